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
	var w builder
	cells := 0
	for _, name := range f.GetSheetList() {
		if visible, err := f.GetSheetVisible(name); err == nil && !visible {
			continue
		}
		rows, err := rowsOf(f, name, limits, &cells)
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
	d := w.document()
	if p, err := f.GetDocProps(); err == nil {
		d.Title, d.Author = squeeze(p.Title), squeeze(p.Creator)
	}
	return d, nil
}

// rowsOf returns the rows that hold text.
func rowsOf(f *excelize.File, sheet string, limits Limits, cells *int) (out [][]string, err error) {
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
		for _, c := range row {
			if squeeze(c) != "" {
				out = append(out, row)
				break
			}
		}
	}
	return out, nil
}
