package office

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/xuri/excelize/v2"
)

// sheets reads the cells of a workbook as they are shown: each visible sheet is a
// page with its name as heading and its rows as a table.
func sheets(data []byte, limits Limits) (Document, error) {
	f, err := excelize.OpenReader(bytes.NewReader(data), excelize.Options{UnzipSizeLimit: limits.Bytes, UnzipXMLSizeLimit: limits.Bytes})
	if err != nil {
		return Document{}, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	defer f.Close()
	text := meter{limits.Bytes}
	w := builder{meter: &text}
	cells := 0
	for _, name := range f.GetSheetList() {
		if visible, err := f.GetSheetVisible(name); err == nil && !visible {
			continue
		}
		rows, err := rowsOf(f, name, limits, &cells, &text)
		if err != nil {
			return Document{}, fmt.Errorf("sheet %q: %w", name, err)
		}
		if len(rows) == 0 {
			continue
		}
		w.page()
		w.heading(1, name)
		w.table(rows)
	}
	if err := text.check(limits.Bytes); err != nil {
		return Document{}, err
	}
	d := w.document()
	if p, err := f.GetDocProps(); err == nil {
		d.Title, d.Author = squeeze(p.Title), squeeze(p.Creator)
	}
	return d, nil
}

// rowsOf returns the rows that hold text. Many cells may share one long text, so what
// they hold is measured as it comes.
func rowsOf(f *excelize.File, sheet string, limits Limits, cells *int, text *meter) (out [][]string, err error) {
	rows, err := f.Rows(sheet)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		row, err := rows.Columns()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBroken, err)
		}
		*cells += len(row)
		if len(out) > limits.Rows || *cells > limits.Cells {
			return nil, fmt.Errorf("%w: more than %d rows or %d cells", ErrTooLarge, limits.Rows, limits.Cells)
		}
		filled := false
		for _, c := range row {
			filled = filled || squeeze(c) != ""
			if !text.take(len(c)) {
				return nil, text.check(limits.Bytes)
			}
		}
		if filled {
			out = append(out, row)
		}
	}
	return out, nil
}
