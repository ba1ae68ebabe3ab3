package parley_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"parley/desk"
)

// A told is a limit or a lifetime that texts for people repeat as a number: pages, help,
// guides, the description of the API. pattern finds such texts. The group of the pattern
// is the number.
type told struct {
	limit   string
	pattern string
	number  string
	least   int // the least number of places that have it
}

// daysOf returns a lifetime in days.
func daysOf(d time.Duration) string { return fmt.Sprint(int(d / (24 * time.Hour))) }

// thousands returns a number as texts have it: with commas.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// words has small numbers as words, as texts have them.
var words = map[string]string{"3": "three", "5": "five", "7": "seven", "10": "ten", "20": "twenty"}

const number = `([0-9]+(?:,[0-9]{3})*|one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty)`

var toldLimits = []told{
	{"desk.LinkLife", `(?i)\blinks?\b[^\n]{0,80}within ` + number + ` minutes`, fmt.Sprint(desk.LinkLife.Minutes()), 5},
	{"desk.LinkLife", `(?i)more than ` + number + ` minutes old`, fmt.Sprint(desk.LinkLife.Minutes()), 1},
	{"desk.SessionIdle", `(?i)session ends after ` + number + ` days`, daysOf(desk.SessionIdle), 2},
	{"desk.SessionLife", `(?i)session ends [^.\n]{0,40}and (?:after )?` + number + ` days`, daysOf(desk.SessionLife), 2},
	{"desk.SignInTries", `(?i)limited, successful ones too: ` + number + ` for an e-mail`, fmt.Sprint(desk.SignInTries), 1},
	{"desk.SignInEvery", `(?i)for an e-mail, and then one in ` + number + ` seconds`, fmt.Sprint(desk.SignInEvery.Seconds()), 1},
	{"desk.AddressTries", number + ` for an address`, fmt.Sprint(desk.AddressTries), 1},
	{"desk.AddressEvery", `for an address, and then one in ` + number + ` seconds`, fmt.Sprint(desk.AddressEvery.Seconds()), 1},
	{"desk.KeepEvents", `(?i)events are kept for ` + number + ` days|can be replayed: ` + number + ` days|--event-retention.: ` + number + ` days|your cursor, up to ` + number + ` days`, daysOf(desk.KeepEvents), 4},
	{"desk.KeyLife", `(?i)kept for at least ` + number + ` days|keeps each send for ` + number + ` days|; for ` + number + ` days it gets|same answer for ` + number + ` days`, fmt.Sprint(desk.KeyLife / 24), 5},
	{"desk.ErasedLife", `(?i)in the last ` + number + ` days|provider's id, for ` + number + ` days`, daysOf(desk.ErasedLife), 2},
	{"desk.FetchLife", `(?i)(?:repeated for|tries for|until|fetched within) ` + number + ` days`, daysOf(desk.FetchLife), 4},
	{"desk.KeepCallback", `(?i)(?:contacts are kept for|deleted after|callbacks are kept for) ` + number + ` days`, daysOf(desk.KeepCallback), 3},
	{"desk.KeepDelivery", `(?i)(?:listed for|It stays for) ` + number + ` days`, daysOf(desk.KeepDelivery), 2},
	{"desk.MaxDeliveries", `(?i)up to ` + number + ` for each endpoint|the newest ` + number + ` of`, thousands(desk.MaxDeliveries), 1},
	{"desk.MaxFollowers", `waiting reads \| on each server 16 of a key and 512 of a workspace, then 429; ` + number + ` in all`, thousands(desk.MaxFollowers), 1},
	{"desk.MaxWorkspaceFollowers", `of a key and ` + number + ` of a workspace, then 429`, thousands(desk.MaxWorkspaceFollowers), 1},
	{"desk.MaxKeyFollowers", `waiting reads \| on each server ` + number + ` of a key`, fmt.Sprint(desk.MaxKeyFollowers), 1},
	{"desk.MaxPings", `(?i)pinged ` + number + ` times a minute`, fmt.Sprint(desk.MaxPings), 2},
	{"desk.DefaultDeliveryRules().GiveUp", `(?i)After ` + number + ` days of failures|down for less than ` + number + ` days`, daysOf(desk.DefaultDeliveryRules().GiveUp), 2},
	{"desk.CallTime", `(?i)for ` + number + ` seconds at most, and is never repeated`, fmt.Sprint(desk.CallTime.Seconds()), 1},
	{"desk.MaxReply", `text.{0,3} has 1 to ` + number + ` characters|pass (?:the )?` + number + ` characters`, thousands(desk.MaxReply), 3},
	{"desk.MaxReplyWithButtons", `with buttons at most ` + number + ` characters`, thousands(desk.MaxReplyWithButtons), 1},
	{"desk.MaxCaption", `caption.{0,3} of up to ` + number + ` characters`, thousands(desk.MaxCaption), 2},
	{"desk.MaxEveryHours", `"every_hours": \{"type": "integer", "minimum": 1, "maximum": ` + number, fmt.Sprint(desk.MaxEveryHours), 1},
	{"desk.MaxOperations", `(?:has|Runs) 1 to ` + number + ` operations|more than ` + number + ` operations|operations in a batch \| ` + number, thousands(desk.MaxOperations), 4},
	{"desk.MaxTemplates", `(?i)at most ` + number + ` templates`, thousands(desk.MaxTemplates), 2},
	{"desk.MaxLibraryBytes", `(?i)templates, with ` + number + ` MiB`, fmt.Sprint(desk.MaxLibraryBytes >> 20), 2},
	{"desk.MaxTemplateBytes", `MiB (?:of JSON|of the provider's JSON) in all and ` + number + ` KiB each`, fmt.Sprint(desk.MaxTemplateBytes >> 10), 2},
	{"desk.PerSecond", `Meta's limits:\*\* ` + number + ` messages a second|the default, ` + number + `\."`, fmt.Sprint(desk.PerSecond), 2},
	{"desk.DefaultMediaPerWorkspace", "which is " + number + " GiB.\" name:\"media-per-workspace", fmt.Sprint(desk.DefaultMediaPerWorkspace >> 30), 1},
}

// TestLimits: the limits in texts for people are those of desk.
func TestLimits(t *testing.T) {
	t.Parallel()
	texts := map[string]string{}
	for _, root := range []string{"README.md", "CONTRIBUTING.md", "docs", "console", "cmd/parley", "mcp", "api/openapi.json"} {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				if e != nil && (e.Name() == "adr" || e.Name() == "testdata") {
					return fs.SkipDir
				}
				return err
			}
			switch filepath.Ext(path) {
			case ".md", ".html", ".json", ".go":
				if !strings.HasSuffix(path, "_test.go") {
					b, err := os.ReadFile(path)
					texts[path] = string(b)
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range toldLimits {
		find, found := regexp.MustCompile(l.pattern), 0
		for path, text := range texts {
			for _, match := range find.FindAllStringSubmatch(text, -1) {
				found++
				if said := strings.Join(match[1:], ""); said != l.number && said != words[l.number] { // one of the groups is not empty
					t.Errorf("%s says %q, but %s is %s", path, match[0], l.limit, l.number)
				}
			}
		}
		if found < l.least || found == 0 {
			t.Errorf("%s is told in %d places, want at least %d: %s", l.limit, found, l.least, l.pattern)
		}
	}
}
