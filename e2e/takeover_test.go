package e2e_test

import (
	"testing"
	"time"
)

// TestTakeWhatWasTaken: the pointer is on "Take it" when a colleague takes the
// conversation. The button becomes "Take over". A click at this moment does not take the
// conversation: the page asks first. A member who loses a conversation is told who has it
// now.
func TestTakeWhatWasTaken(t *testing.T) {
	t.Parallel()
	m := newTeam(t, newDir(t), nil)
	ids := map[string]string{"Mei": m.member("Mei", "agent"), "Tomas": m.member("Tomas", "agent")}
	made := m.must("sandbox", "inbound", "--channel", m.channel, "--from", "+34612555779", "--name", "Rosa Marín", "--text", "When do you open?", "--at", time.Now().UTC().Format(time.RFC3339Nano))
	talk := "/inbox/" + made["conversation_id"].(string)
	api := m.nodes[0].client(t, m.key, 1)
	holder := func() string {
		return decode[struct {
			Data struct {
				Assigned string `json:"assigned_member_id"`
			}
		}](t, api.must(t, 200, "GET", "/conversations/"+made["conversation_id"].(string), "")).Data.Assigned
	}
	b := newTab(t, m.nodes[0].url)
	b.size(1440, 900, "light")
	b.open(m.link("Mei"))
	b.follow("main form button")
	b.open(talk)
	b.wait(`document.querySelector("#head .btn.main")?.textContent === "Take it"`)
	// The click comes just when the button has changed.
	look[bool](b, `new MutationObserver(() => {
		const button = document.querySelector("#head .btn.main");
		if (button?.textContent === "Take over" && !window.clicked) { window.clicked = true; button.click(); }
	}).observe(document.querySelector("#head"), { childList: true, subtree: true, characterData: true }) || true`)
	api.must(t, 200, "PUT", "/conversations/"+made["conversation_id"].(string)+"/assignee", `{"member":"`+ids["Tomas"]+`"}`)
	b.wait(`document.querySelector("#news")?.innerText.includes("Tomas")`)
	if got := holder(); got != ids["Tomas"] {
		t.Fatalf("held by %s after a click that was meant for nobody's", got)
	}
	// After the question, Mei takes it over, and Tomas takes it back.
	b.follow("#news .btn")
	b.wait(`document.querySelector("#standing[data-mine]")`)
	api.must(t, 200, "PUT", "/conversations/"+made["conversation_id"].(string)+"/assignee", `{"member":"`+ids["Tomas"]+`"}`)
	b.wait(`document.querySelector("#toasts")?.innerText.includes("No longer yours: held by") && document.querySelector("#toasts").innerText.includes("Tomas")`)
	// After a while, the page takes it that the member has seen the new state.
	b.wait(`document.querySelector("#head [name=seen_assignee]").value === "` + ids["Tomas"] + `"`)
	b.follow("#head .btn.main")
	b.wait(`document.querySelector("#standing[data-mine]")`)
	if got := holder(); got != ids["Mei"] {
		t.Errorf("held by %s after it was taken over", got)
	}
}
