package sqlite

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"parley/store/storetest"
)

// TestMigrationsAreFrozen fails if a released migration is edited: installations that
// have run it would never run the edited text.
func TestMigrationsAreFrozen(t *testing.T) {
	t.Parallel()
	storetest.Frozen(t, migrations, map[string]string{
		"00001_contacts.sql":        "b7e482c8bbb8f02ea6a375e85468d11b553670733e26e278dfb692c25da11d49",
		"00002_conversations.sql":   "ad60f7e80cbc0ea3a5de3553ccb5df1bce03a0bb0ebc8f36027f8c47c3df3fe7",
		"00003_leases.sql":          "a52db00198c7f5c124749549553dc558897c5c0e7d5080985dc389517e426082",
		"00004_webhooks.sql":        "6eb6ddf46bab17e33d19b8361bae228a6736a4ffdfdd78e09bd460cebe520f44",
		"00005_identities.sql":      "85b9ee445b75107fc520f68b5ef3e0723975c6fd63b74fce516a6eccc1b746f8",
		"00006_lists.sql":           "62043a0fefb3084cf5606377badb02de2f481016b738563920797fe1f86dc847",
		"00007_clock.sql":           "68c25a7b8adbb09794ae49d10d61de20ffccb915be7e9a6a0bccac4b51165934",
		"00008_inbound.sql":         "481bedc0858e08a5b3b8e82e80b25c0f31273490c42f66b42089a04be22eb8d6",
		"00009_large.sql":           "f4ff8afefd2e6ca9eebbf78242dc471e0f327b44ff69a25ca2a735ab8233ed10",
		"00010_actors.sql":          "dd5855ed6265d79d992e2982441565f475c00a235bb59eecfed92f0599de91ec",
		"00011_called.sql":          "7085028f9d2ad4b28439f9b0c5dc334568c4b15ad46a67c4b5ec0d7fe7e2c2c6",
		"00012_early_users.sql":     "214fa7cbe04e373760b2b1312d2509e037548f8628bcf732585335981cbcefc6",
		"00013_events.sql":          "0f8659f0744ed1306ac0b5894147eeb71f54e22bcc7d75dcbe902102ded62f9e",
		"00014_webhooks.sql":        "955aa232859150aac0e291ab141f637404eb6e1eb2b20c01ba72fa6fdcde97e6",
		"00015_deliveries.sql":      "97cef4bcfc4dff04a1b68cb14ae0b2b77a3f1aaaaf6063f737faa48a5829bcb2",
		"00016_key_uses.sql":        "2a8299346b3d4c2564dfeacf3e989020b11e47780109816bc61f08446c2f6eed",
		"00017_console.sql":         "030f7a410848363ea861224f85756e553bfe5bd5bf8ab8ce7c841775783ebe8b",
		"00018_access.sql":          "0ba05694812cf23e060e1bce9cafc7eaca5caa47016feb0a62c8627f80a7eee0",
		"00019_log.sql":             "030019bc41bbd7254814b6ec0346f390aa28eda6e4417e60a414d8b99fe2ce4b",
		"00020_daily.sql":           "c879fae0b19d6b4d16ee3e152d2a439a9d67cf309452a1a17e61ef2f7a1a01e6",
		"00021_notes.sql":           "8db1ea7d41f7264c99e91d6555e31d5b8a8c59c84f7ae3e6cb4180db87ef65b6",
		"00022_team.sql":            "e128fbd75f04f161c806d4bd61e5948f365479a5dc31fe2e7cd8b1659db12a36",
		"00023_talk.sql":            "c06d04fff8e9211061c830df37b83766530d929fb1ef7d943317c500bde47823",
		"00024_policy.sql":          "097a140046818b93bc805f74e3a1654cc3504e0acb0d8890e4e1641ec367a156",
		"00025_media.sql":           "38004263f536184e3c5f1f53df037a8285d74e0336bfe764b4614498178792e0",
		"00026_answers.sql":         "b069ef1de6f70cf1105bd4c848edd8c637edff6666c7892e7c944683ea2bd11d",
		"00027_attempts.sql":        "838dbb3f8eb549305f96c8c7e1015f1bcc4c3fbe72eba151071bdc2b5f603471",
		"00028_said_again.sql":      "b777c5d41d6deeb387c024d302e7ecf0356b375e3956eeacbcf61c5812c59dd7",
		"00029_room.sql":            "1582592f20fc8d929b0487a202d61fe8d2d6a79e1b6a7b0fc8222cc2c3f8e5ae",
		"00030_channel_names.sql":   "d521ace8048d89502154151a8706774d414e248033a02ab09f42e4b5616f98a9",
		"00031_search.sql":          "725193e1ecac84ce96b3a660dc8c7008987efd1f85c6d8e42f095f6f4b0b97b0",
		"00032_imports.sql":         "e48da0cd993dc4cb16523629976a49e126e58ab367e2501391ff96191ef23c32",
		"00033_history.sql":         "2ff2544223a1a8c7c10eeee44f2fbbbe2e226d59fb6cde777034affd056f56b6",
		"00034_uploads.sql":         "eaff1bc28259694a36204cc874b39cedb8565a56bd1ad4c8608ede6e5d6c0eb9",
		"00035_erasures.sql":        "086af75cbd49d73922c3b5e1e2c14b2b34165a221211ac5f82b3be322b7a1201",
		"00036_merges.sql":          "823d2e45fc9bb6da8c6fd0f227c0c3198a87d4864aa0d2447d23a3308bb8126a",
		"00037_broadcasts.sql":      "25b433a345beb937aa427a73de8feb773cbee3541cd9accfcccdcd5589e0654d",
		"00038_conflicts.sql":       "e8f85c6732e87a5c6d40022b28d0344e6df498a7d53b2fdbe9a56b3466b7e6ef",
		"00039_broadcast_files.sql": "c6ff11aa8cc781c00d87a824074aa4fed8166c70c059c6239639e6fbb1e29133",
		"00040_ages.sql":            "03300a632e5feb230e18d9e9317c56a6964fbc84e38f9486bc374941b3590bfe",

		"00041_broadcast_replies.sql": "661dcea2501abe4cca71ac5af2530e7e4e710b58ef904015e61199cc733018cf",
		"00042_segments.sql":          "f66aa2f73aae082ec08118e79e2ae7ef38e8d669df11d66438b4db01fe1875ae",
		"00043_broadcast_uploads.sql": "52c01ee456e1d133081fe1eca91b7fcdb127c7dbb75a8bba2c57d222dac82a9d",
		"00044_later_permissions.sql": "83d88357d20a30a5e87146ceaa00053a02d627a7d93f02a207a50e2ddb617b48",
	})
}

// TestAnyDirectoryOpens: a path is not a URL, so none of its characters has a special
// meaning.
func TestAnyDirectoryOpens(t *testing.T) {
	t.Parallel()
	names := []string{"a?b", "a#b", "a%20b", "a b", "a&mode=memory", "file:a", "ü"}
	if runtime.GOOS == "windows" {
		names = []string{"a#b", "a%20b", "a b", "a&mode=memory", "ü"}
	}
	for _, name := range names {
		dir := t.TempDir()
		s := openAt(t, filepath.Join(dir, name, "parley.db"))
		newWorkspace(t, s)
		made, err := os.ReadDir(dir)
		if err != nil || len(made) != 1 || made[0].Name() != name {
			t.Errorf("%q: the directory holds %v, %v", name, made, err)
		}
		made, err = os.ReadDir(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range made {
			if !strings.HasPrefix(file.Name(), "parley.db") {
				t.Errorf("%q: a stray file %s", name, file.Name())
			}
		}
	}
}
