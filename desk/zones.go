package desk

import (
	"archive/zip"
	_ "embed"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// zonesZip is lib/time/zoneinfo.zip of the Go distribution: all time zones of the IANA
// database, 2025c. The machine's zones are not used, because nodes could have different ones.
//
//go:embed zones.zip
var zonesZip string

var zoneFiles = sync.OnceValue(func() *zip.Reader {
	r, err := zip.NewReader(strings.NewReader(zonesZip), int64(len(zonesZip)))
	if err != nil {
		panic(err) // the archive is part of the program, so it can be read
	}
	return r
})

var zones sync.Map // the zones that were used before, by name: *time.Location

// TimeZones lists the names of time zones that belong to a place, such as Europe/Istanbul.
// Other zones, such as UTC, are accepted but not listed.
func TimeZones() []string { return placeZones() }

var placeZones = sync.OnceValue(func() (list []string) {
	for _, f := range zoneFiles().File {
		switch area, _, _ := strings.Cut(f.Name, "/"); area {
		case "Africa", "America", "Antarctica", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific":
			if !f.FileInfo().IsDir() {
				list = append(list, f.Name)
			}
		}
	}
	slices.Sort(list)
	return list
})

// zone returns the time zone with exactly this name in the IANA database, such as
// Europe/Istanbul, or nil.
func zone(name string) *time.Location {
	if known, ok := zones.Load(name); ok {
		return known.(*time.Location)
	}
	for _, f := range zoneFiles().File {
		if f.Name != name || f.FileInfo().IsDir() {
			continue
		}
		r, err := f.Open()
		if err != nil {
			panic(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			panic(err)
		}
		z, err := time.LoadLocationFromTZData(name, data)
		if err != nil {
			panic(err)
		}
		zones.Store(name, z)
		return z
	}
	return nil
}
