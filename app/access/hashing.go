package access

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/desk"
	"parley/store"

	"golang.org/x/crypto/argon2"
)

// How passwords are hashed: argon2id, as OWASP recommends it. A hash takes about 20 MB and
// 40 ms.
const (
	argonMemory  = 19456 // KiB
	argonTime    = 2
	argonThreads = 1
	argonSalt    = 16
	argonKey     = 32
)

// A recipe says how a password is hashed: it is a hash in PHC form, up to the salt. Members
// with the same e-mail use the same recipe, so that one hash can be compared with all their
// passwords (docs/adr/0037).
type recipe string

// newRecipe returns the current recipe with a salt.
func newRecipe(salt []byte) recipe {
	return recipe(fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s", argon2.Version, argonMemory, argonTime, argonThreads, base64.RawStdEncoding.EncodeToString(salt)))
}

// recipeOf returns the recipe of a stored hash.
func recipeOf(hash string) recipe { return recipe(hash[:max(0, strings.LastIndexByte(hash, '$'))]) }

// recipesOf lists the recipes of the members' passwords, the most frequent first.
func recipesOf(list []store.MemberAccess) []recipe {
	count, recipes := map[recipe]int{}, []recipe(nil)
	for _, h := range list {
		if h.Password == "" {
			continue
		}
		r := recipeOf(h.Password)
		if count[r]++; count[r] == 1 {
			recipes = append(recipes, r)
		}
	}
	slices.SortFunc(recipes, func(a, b recipe) int { return cmp.Or(count[b]-count[a], strings.Compare(string(a), string(b))) })
	return recipes
}

// recipeFor returns the recipe for an e-mail if no member with this e-mail has a password
// yet.
func (a *Service) recipeFor(canonical string) recipe {
	mac := hmac.New(sha256.New, a.Derive("password salt"))
	mac.Write([]byte(canonical))
	return newRecipe(mac.Sum(nil)[:argonSalt])
}

// recipeOfEmail returns the recipe for a new password of a member. If other members with
// the same e-mail have passwords, it is their recipe.
func (a *Service) recipeOfEmail(ctx context.Context, p desk.Principal) (recipe, error) {
	canonical := desk.ReferTo(p.Member.Email).Email()
	holders, err := a.Store.MembersByEmail(ctx, canonical, maxHolders)
	if err != nil {
		return "", err
	}
	today := newRecipe(nil)
	holders = slices.DeleteFunc(holders, func(h store.MemberAccess) bool {
		return h.ID == p.Member.ID || !strings.HasPrefix(h.Password, string(today))
	})
	if list := recipesOf(holders); len(list) > 0 {
		return list[0], nil
	}
	return a.recipeFor(canonical), nil
}

// spreadLife is how long a spread is used before it is read again.
const spreadLife = 10 * time.Minute

// A spread is the greatest number of recipes that the passwords of one e-mail have. It is
// greater than 1 only while some members have not signed in since an upgrade from an
// earlier release, or since their e-mail was changed.
type spread struct {
	mu    sync.Mutex
	most  int // 0: not known yet
	until time.Duration
}

// mostRecipes returns how many hashes each sign-in makes. This is the spread, but at least
// seen: the number of recipes that the caller found for an e-mail.
func (a *Service) mostRecipes(ctx context.Context, seen int) (int, error) {
	a.spread.mu.Lock()
	defer a.spread.mu.Unlock()
	if a.spread.most > 0 && a.Uptime() < a.spread.until {
		a.spread.most = max(a.spread.most, seen)
		return a.spread.most, nil
	}
	most, err := a.Store.MostRecipes(ctx, 1+base64.RawStdEncoding.EncodedLen(argonKey))
	if err != nil {
		return 0, err
	}
	a.spread.most, a.spread.until = min(max(most, seen, 1), maxSignIns), a.Uptime()+spreadLife
	return a.spread.most, nil
}

// readPassword returns a typed password in the form that is hashed. A text that is too long
// becomes "", which is not a password of any member.
func readPassword(text string) string {
	if len(text) > maxPassword {
		return ""
	}
	return desk.NormalPassword(text)
}

// hashes returns the hashes of a password as texts, one for each recipe. Only one call
// makes hashes at a time. If a call must wait too long for the others, it returns
// Unavailable.
func (a *Service) hashes(ctx context.Context, password string, recipes []recipe) ([]string, error) {
	timer := time.NewTimer(longestHashing)
	defer timer.Stop()
	select {
	case a.hashing <- struct{}{}:
	case <-timer.C:
		return nil, errManyHashes
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-a.hashing }()
	list := make([]string, len(recipes))
	for i, r := range recipes {
		key, err := r.hash(password)
		if err != nil {
			return nil, err
		}
		a.hashed.Add(1)
		list[i] = string(r) + "$" + base64.RawStdEncoding.EncodeToString(key)
	}
	return list, nil
}

var errManyHashes = desk.Errorf(desk.Unavailable, "too many people sign in at this moment: try again shortly")

// hash returns the hash of a password by this recipe.
func (r recipe) hash(password string) ([]byte, error) {
	var version int
	var memory, times uint32
	var threads uint8
	parts := strings.Split(string(r), "$")
	if len(parts) != 5 || parts[1] != "argon2id" {
		return nil, fmt.Errorf("the hash of a password has an unknown form")
	}
	if _, err := fmt.Sscanf(parts[2]+" "+parts[3], "v=%d m=%d,t=%d,p=%d", &version, &memory, &times, &threads); err != nil || version != argon2.Version {
		return nil, fmt.Errorf("the hash of a password has unknown parameters")
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil {
		return nil, fmt.Errorf("the salt of a password: %w", err)
	}
	return argon2.IDKey([]byte(password), salt, times, memory, threads, argonKey), nil
}

// turns lets one change of a password through at a time, so at most one change competes
// with the sign-ins for hashing. A change first waits for the earlier changes of its own
// workspace. Then it competes only with one change of each other workspace. So many changes
// in one workspace do not delay the other workspaces.
type turns struct {
	one  chan struct{} // has room for one
	mu   sync.Mutex
	each map[desk.ID]*turn
}

type turn struct {
	one   chan struct{}
	users int
}

// enter waits for a turn. After longestHashing it returns Unavailable.
func (t *turns) enter(ctx context.Context, ws desk.ID) (leave func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, longestHashing, errManyHashes)
	defer cancel()
	t.mu.Lock()
	mine := t.each[ws]
	if mine == nil {
		mine = &turn{one: make(chan struct{}, 1)}
		t.each[ws] = mine
	}
	mine.users++
	t.mu.Unlock()
	forget := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if mine.users--; mine.users == 0 {
			delete(t.each, ws)
		}
	}
	select {
	case mine.one <- struct{}{}:
	case <-ctx.Done():
		forget()
		return nil, context.Cause(ctx)
	}
	select {
	case t.one <- struct{}{}:
	case <-ctx.Done():
		<-mine.one
		forget()
		return nil, context.Cause(ctx)
	}
	return func() {
		<-t.one
		<-mine.one
		forget()
	}, nil
}
