package postgres

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"parley/store/postgres/pgtest"
	"parley/store/storetest"

	"github.com/jackc/pgx/v5"
)

// TestMigrationsAreFrozen fails if a released migration is edited: installations that
// have run it would never run the edited text.
func TestMigrationsAreFrozen(t *testing.T) {
	t.Parallel()
	storetest.Frozen(t, migrations, map[string]string{
		"00001_contacts.sql":        "636553917a2a686f4d028efab6219e8d26a09dafc4127cb4cae5d8668a7ba282",
		"00002_conversations.sql":   "3838cbf3d112267bd441c127b6b7dc1641c69329254d82789800342d70347b17",
		"00003_leases.sql":          "f190a214e83277582bb0bdca53c502e34a1b65ab57e5df86ab38297882fa392a",
		"00004_webhooks.sql":        "40be94cb22ea7ffa1034329b37be3ec5867bfcc9d999ebb042fcf54d8321dbce",
		"00005_identities.sql":      "50e710a8e27f5ad982f3fd03282a2456fa2abc410d1a37949d322a62e01a2927",
		"00006_lists.sql":           "490b4a80becfdf79ea23676617aa40b62c2ae847885a3715f3b8045ffb6b1d50",
		"00007_clock.sql":           "f47c052867b07b0802e902a3a53b89fbb4842501fdd0d127b8f9f00986cc92db",
		"00008_inbound.sql":         "5b3790351752f879c3530003282b898eac8717faf656042c0228e20d4974cf89",
		"00009_large.sql":           "7f814c8b0114949fab1d0805c16e711ecd0c4d9f1f780e4bd5feafef9270001e",
		"00010_actors.sql":          "dd5855ed6265d79d992e2982441565f475c00a235bb59eecfed92f0599de91ec",
		"00011_called.sql":          "0fe3aa803ebeaefa713b553dc932f1b0f194a75d3f318415c5e12d68fe385688",
		"00012_early_users.sql":     "4e73fab5b65aeeca086094a9b06f66262f2a7215c7bde9108e6618127dbee0d8",
		"00013_events.sql":          "07c6691473b7d3dfda0d177cb54f6feddf93d4239f172664fc9d89808cd9f405",
		"00014_webhooks.sql":        "0e5652fd49c56a1e0456dc41b219dc9f5fa080011adf732b65473ba6e1f9aef9",
		"00015_deliveries.sql":      "c413a346109a2fa6b0edfa84c1c288c73ac743ee7e50557115903118f47a3a9d",
		"00016_key_uses.sql":        "9ea66027bd716bc354b3434d6f3fad0e5a1311dc64bef86a2ec46f79aa63b5fc",
		"00017_console.sql":         "a3f8450a67a9ac7c57049e71c42e1276c4b9d33ee165a723dbd3e40266c8f3d2",
		"00018_access.sql":          "ecdaa929554cb9cf03daf7a44221690f457158c390b560cd746ec2dd23d0bff3",
		"00019_log.sql":             "33241c0dfba00155446948d163b508442b40604c9d2e9a486e47eff8f5a207ce",
		"00020_daily.sql":           "d67913887067e0c5da8f05e3cc40d796f0864283d648fa04b3cb80377ac235fa",
		"00021_notes.sql":           "d25203a5499ca54c16ef8e187b4847d0609db946be885f6edfac85f8273e6507",
		"00022_team.sql":            "40b402175af46a02261dceeb977024805dfb5500a7391a7638a93463a3f76098",
		"00023_talk.sql":            "796ab174e43b561e586175fca3ce2f442b6a10d339f26f17eda088d6c64af782",
		"00024_policy.sql":          "f03988235b65816790b7ab0433cc205852197ba53cbf99203b4c8998c07e4d5c",
		"00025_media.sql":           "6921de82865d992c5a0015651c811580883b7753fba2cf8611737b9b35f57f8d",
		"00026_answers.sql":         "556dfafa465c405da6bd5c2db7aa2a9755f75f6368000e0783dcc0aa921f994d",
		"00027_attempts.sql":        "427a497c3647bd4810bedffdb5054070db6d12d7b9509a32507cf46c6b330dff",
		"00028_said_again.sql":      "c2b2bb353a51309ab60b7419d618ffda26d19ee3d060507a1f7b1d19c2326f66",
		"00029_room.sql":            "d2efcbd7febe66f743984850c9608c2e4626ebe74f41a3ebe6e6872f0737d5c6",
		"00030_channel_names.sql":   "f79c127ed553c4b5dfcc55aa691b18e74cb3a55e75b514b95ccfc986e5b03142",
		"00031_shard_clock.sql":     "645d0e0118b4b3e6e3460a540c71e30410efe457b77f86a574b0eda62f1bc612",
		"00032_counted_at.sql":      "683e23b6cb8c709f871c4a205099c454f0b254d5e0773aad51ec9373e0fe2d3d",
		"00033_search.sql":          "e2f72c688a7aa6a959c90eaa45693727858dfbf972b41b2f18e218e0f5f87e43",
		"00034_imports.sql":         "b085c378a37c4b71eccf86ef15c46e7d4bca21606819d6e31a271b6f905c2585",
		"00035_history.sql":         "b74b23b243f6fab34b67265159a017595d5449b33a34609b340848f3474e3548",
		"00036_uploads.sql":         "e6bdab626a6322a77da3796783a8306f8feaeecc99221daa27ff9d6417da6712",
		"00037_erasures.sql":        "d9bc66511d6f269f8495be31c54d32b95253a15bab70e0bc783986ac23d96a36",
		"00038_merges.sql":          "25630cab97b32934668e0629394cfda1cc6a56cdf6d63e968c59bd28bf992605",
		"00039_broadcasts.sql":      "07449a8caa20ae56b532ab1c3899fc5c12fa3dcedac91ec030c4b8172944b4cd",
		"00040_conflicts.sql":       "96b0e50f60bd4678f05cb67a8e662b766e4f30279b3e15783bf7615034f6f880",
		"00041_broadcast_files.sql": "523ac8e689ddd4fbff867e329c65f7b9f3c92a2991f89a4e4e64dea87800a0bc",
		"00042_ages.sql":            "07e323624872e9a802d91bbc7b1650777b55b704b1ffc218a00dbcf5ba48d19d",

		"00043_broadcast_replies.sql": "4655df87aaa164c748e2346f69e5a18443c5ba011dd8c46505cfd1d58ca1c8ea",
		"00044_segments.sql":          "b0a8d91d693f3d35bae17aee62375e48155bfbece4841f4333e313691bfd8f61",
		"00045_broadcast_uploads.sql": "39c03e48888cc645aa1ee963f8f59fb2843cd80d7a8580abccd8778dd9cd1887",
		"00046_later_permissions.sql": "a6244d9906b9c35d9e82d7005b2758d33642a79b1c021d767526e5b8f8474da1",
	})
}

// TestMigrateBesideWriters: if a migration and a transaction of the previous release
// deadlock, the migration is tried again.
func TestMigrateBesideWriters(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	connect := func(deadlocks string) *pgx.Conn {
		t.Helper()
		c := config.Copy()
		c.RuntimeParams["deadlock_timeout"] = deadlocks
		conn, err := pgx.ConnectConfig(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return conn
	}
	check(t, schemaOf(t, url, 27).Close())
	writer, looks := connect("1min"), connect("1s") // so that the migration detects the deadlock first
	exec := func(sql string) {
		t.Helper()
		if _, err := writer.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	exec(`BEGIN`)
	exec(`LOCK TABLE attempts IN ROW EXCLUSIVE MODE`) // like a write
	opened := make(chan error, 1)
	go func() {
		s, err := Open(context.Background(), Config{URL: withSettings(url, "deadlock_timeout=1s"), MaxConns: 2})
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	for waits := 0; waits == 0; { // when the migration waits, it has already changed messages
		if err := looks.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'attempts'::regclass`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-opened:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
	}
	exec(`LOCK TABLE messages IN ROW EXCLUSIVE MODE`)
	exec(`COMMIT`)
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

// TestMigrateBesideDump: a transaction such as that of pg_dump reads a table for a long
// time. A starting server that must change this table waits for the transaction, but the
// running servers can still read the table. The test does this with each table that a
// migration, the fence or the rebuilding of claims locks.
func TestMigrateBesideDump(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"messages", "workspaces", "claims"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t)
			check(t, schemaOf(t, url, 27).Close())
			connect := func() *pgx.Conn {
				t.Helper()
				conn, err := pgx.Connect(t.Context(), url)
				check(t, err)
				t.Cleanup(func() { _ = conn.Close(context.Background()) })
				return conn
			}
			dump, running, looks := connect(), connect(), connect()
			tx, err := dump.Begin(t.Context())
			check(t, err)
			_, err = tx.Exec(t.Context(), `LOCK TABLE `+table+` IN ACCESS SHARE MODE`)
			check(t, err)
			var told bytes.Buffer
			opened := make(chan error, 1)
			go func() {
				s, err := Open(context.Background(), Config{URL: url, MaxConns: 2, Log: slog.New(slog.NewTextHandler(&told, nil))})
				if err == nil {
					err = s.Close()
				}
				opened <- err
			}()
			for waits := 0; waits == 0; {
				check(t, looks.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = $1::regclass`, table).Scan(&waits))
				select {
				case err := <-opened:
					t.Fatalf("it did not wait: %v", err)
				default:
				}
			}
			began := time.Now()
			reading, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			var n int
			if err := running.QueryRow(reading, `SELECT count(*) FROM `+table).Scan(&n); err != nil {
				t.Errorf("a read of a running server, after %v: %v", time.Since(began), err)
			}
			check(t, tx.Commit(t.Context()))
			if err := <-opened; err != nil {
				t.Error(err)
			}
			if n := strings.Count(told.String(), "pg_dump"); n == 0 {
				t.Errorf("the log does not tell why it waits: %s", &told)
			}
		})
	}
}
