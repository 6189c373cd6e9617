package cli

import (
	"strings"
)

// cell is one field of a table.
type cell struct {
	text  string
	style style
}

func cells(texts ...string) []cell {
	out := make([]cell, len(texts))
	for i, t := range texts {
		out[i] = cell{text: t}
	}
	return out
}

// table is rows under a head. Its last column is free text: where the terminal is narrow it gets what the others leave.
type table struct {
	head []string
	rows [][]cell
}

// How a table that is wider than its terminal is laid out.
const (
	lastLeast  = 24 // columns that free text needs beside the others; with fewer it goes below its row
	otherLeast = 12 // so far other columns shrink; their cells go on in the next line
	belowBy    = 4  // so far it is indented there
)

// layout is how wide the columns of a table are, and where a row breaks into lines.
type layout struct {
	widths []int
	breaks []int // columns that begin another line
}

// lines lays a table out: columns two spaces apart. Nothing is cut: what the terminal has no room for goes on in the next line.
func (s *screen) lines(t table) []string {
	l := s.layOut(t)
	var out []string
	if len(t.head) > 0 {
		out = s.row(out, cells(t.head...), l)
	}
	for _, row := range t.rows {
		out = s.row(out, row, l)
	}
	return out
}

func (s *screen) layOut(t table) layout {
	columns := len(t.head)
	for _, row := range t.rows {
		columns = max(columns, len(row)) // a table may have no head
	}
	natural, least := make([]int, columns), make([]int, columns)
	for i, h := range t.head {
		natural[i], least[i] = wide(h), wide(h)
	}
	for _, row := range t.rows {
		for i, c := range row {
			natural[i] = max(natural[i], wide(s.text(oneLine(c.text))))
		}
	}
	for i := range least {
		least[i] = min(max(least[i], otherLeast), natural[i])
	}
	l, last, room := layout{widths: natural}, columns-1, s.width-1
	if s.width <= 1 || total(natural) <= room || columns == 0 {
		return l
	}
	beside := append([]int(nil), natural...)
	beside[last] = min(natural[last], lastLeast)
	if shrink(beside, least, last, room) {
		beside[last] = max(beside[last], room-total(beside[:last])-2)
		l.widths = beside
		return l
	}
	if last > 0 && shrink(natural[:last], least[:last], last, room) {
		natural[last] = min(natural[last], room-belowBy)
		l.breaks = []int{last}
		return l
	}
	at := 0 // too many columns even so: each line takes as many as it has room for
	for i := range natural {
		indent := min(len(l.breaks), 1) * belowBy
		natural[i] = min(natural[i], max(room-belowBy, 1))
		if i > at && indent+total(natural[at:i+1]) > room {
			l.breaks, at = append(l.breaks, i), i
		}
	}
	return l
}

// shrink takes from the widest columns, the last one apart, until all have room; false if they cannot.
func shrink(widths, least []int, last, room int) bool {
	for total(widths) > room {
		widest := -1
		for i, w := range widths {
			if i != last && w > least[i] && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		widths[widest]--
	}
	return true
}

// total is how wide columns are together.
func total(widths []int) int {
	sum := max(len(widths)-1, 0) * 2
	for _, w := range widths {
		sum += w
	}
	return sum
}

// row appends a row, in as many lines as its layout and its longest cell need.
func (s *screen) row(out []string, row []cell, l layout) []string {
	from := 0
	for i, to := range append(append([]int(nil), l.breaks...), len(l.widths)) {
		if from = min(from, len(row)); i == 0 {
			out = s.rowLines(out, row[:min(to, len(row))], l.widths, 0)
		} else if part := row[from:min(max(to, from), len(row))]; !blank(part) {
			out = s.rowLines(out, part, l.widths[from:], belowBy)
		}
		from = to
	}
	return out
}

func blank(row []cell) bool {
	for _, c := range row {
		if c.text != "" {
			return false
		}
	}
	return true
}

func (s *screen) rowLines(out []string, row []cell, widths []int, indent int) []string {
	parts, height := make([][]string, len(row)), 1
	for i, c := range row {
		text := s.text(oneLine(c.text))
		parts[i] = []string{text}
		if wide(text) > widths[i] {
			parts[i] = folded(text, widths[i])
		}
		height = max(height, len(parts[i]))
	}
	for y := range height {
		var b strings.Builder
		b.WriteString(strings.Repeat(" ", indent))
		gap := 0
		for i, c := range row {
			text := ""
			if y < len(parts[i]) {
				text = parts[i][y]
			}
			if text != "" {
				b.WriteString(strings.Repeat(" ", gap) + s.paint(c.style, text))
				gap = 0
			}
			gap += widths[i] - wide(text) + 2
		}
		out = append(out, b.String())
	}
	return out
}
