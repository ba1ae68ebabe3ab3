package desk

import "strings"

// Nearest returns the known name nearest to a misspelt one, "" if none is near. A name is
// near if it differs only in case or separators, or by one edit for every three letters.
func Nearest(name string, known []string) string {
	const longest = 64 // known names are shorter; the time grows with the product of both lengths
	if len(name) > longest {
		return ""
	}
	plain := strings.NewReplacer("_", "", "-", "", " ", "")
	letters := func(s string) string { return plain.Replace(strings.ToLower(s)) }
	nearest, least := "", 0
	for _, k := range known {
		n := distance(letters(name), letters(k))
		if n <= max(1, len(k)/3) && (nearest == "" || n < least) {
			nearest, least = k, n
		}
	}
	return nearest
}

// distance is the number of steps that turn a into b. A step inserts, removes or replaces a
// byte, or swaps it with the next one.
func distance(a, b string) int {
	before, last, now := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range a {
		now[0] = i + 1
		for j := range b {
			replace := last[j]
			if a[i] != b[j] {
				replace++
			}
			now[j+1] = min(replace, last[j+1]+1, now[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				now[j+1] = min(now[j+1], before[j-1]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(b)]
}
