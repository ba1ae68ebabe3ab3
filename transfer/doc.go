// Package transfer reads and writes files of contacts: CSV as spreadsheets write it, and JSON
// Lines (contract-data §2 to §4). It streams: a file of any size needs the memory of a row.
//
//	text.go     the encoding of a file
//	csv.go      records of a CSV file, its delimiter, the guard against formulas
//	columns.go  which column of a CSV file is which field
//	cells.go    cells as values of fields
//	file.go     a file that is imported: reading it through, and its rows
//	errors.go   rejected rows, as a file to mend
//	erasures.go files of deleted contacts
//	write.go    files that are exported: CSV, CSV for spreadsheets, JSON Lines
package transfer
