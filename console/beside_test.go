package console

import (
	"testing"

	"parley/desk"
)

// TestBeside: beside a thread, one field of the person is changed at a time, by the
// rules of the contact's page. Addresses and sites are links. The earlier conversation
// is shown above the thread.
func TestBeside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for key, kind := range map[string]string{"plan": "text", "site": "url"} {
		if _, _, err := w.app.PutAttribute(t.Context(), w.operator(), desk.AttributeInput{Key: key, Label: desk.Field[string]{Set: true, Value: "The " + key}, Type: desk.Field[string]{Set: true, Value: kind}}); err != nil {
			t.Fatal(err)
		}
	}
	mei := w.as(w.mei)
	old := w.writes("+34 612 34 56 70", "Sofia", "The last words")
	if _, err := w.app.SetStatus(t.Context(), w.operator(), old.ID, desk.StatusClosed, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.app.SetStatus(t.Context(), w.operator(), old.ID, desk.StatusArchived, nil); err != nil {
		t.Fatal(err)
	}
	now := w.writes("+34 612 34 56 70", "", "The first words")
	if now.ID == old.ID {
		t.Fatal("the conversation is not a new one")
	}
	path, contact := "/inbox/"+now.ID.String(), "/contacts/"+now.ContactID.String()
	mei.post(contact, "email", "sofia@a.example", "attributes.site", "https://a.example/x", "note", "A note").sends(contact + "?done=saved")
	mei.get(path).want(200, `href="mailto:sofia@a.example"`, `href="tel:+34612345670"`, `href="https://a.example/x" rel="noopener noreferrer`, "The last words", `id="edit-note"`, "More fields").lacks("The plan")
	mei.get(path+"?person=open&edit=more").want(200, "with-person", "The plan", `edit=attributes.plan`)
	mei.get(path+"?person=open&edit=attributes.plan").want(200, `action="`+path+`/person?person=open&amp;edit=attributes.plan"`, `name="was.attributes.plan" value=""`).golden("conversation/edit")
	mei.post(path+"/person?person=open&edit=attributes.plan", "attributes.plan", "pro").sends(path + "?person=open&done=saved")
	mei.get(path).want(200, "The plan", "<bdi>pro</bdi>")
	// Another member has changed the field: nothing is overwritten until the member
	// chooses.
	g := mei.post(path+"/person?person=open&edit=attributes.plan", "attributes.plan", "max").want(409, "Choose which to keep", "pro", `value="max"`)
	mei.post(path+"/person?person=open&edit=attributes.plan", "attributes.plan", "max", "now.attributes.plan", value(t, g.body, "now.attributes.plan"), "choose.attributes.plan", "mine").sends(path + "?person=open&done=saved")
	mei.post(path+"/person?edit=attributes.site", "attributes.site", "nonsense", "was.attributes.site", "https://a.example/x").want(422, "Error: ", `name="attributes.site"`)
	mei.post(path+"/person?edit=name", "name", "Sofia B", "was.name", "Sofia").sends(path + "?person=open&done=saved")
	mei.post(path+"/person?edit=phone", "phone", "+34 612 34 56 99", "was.phone", "+34 612 34 56 70").sends(path + "?person=open&done=saved")
	mei.get(path).want(200, "<bdi>Sofia B</bdi>", "tel:+34612345670", "<bdi>max</bdi>").lacks("34612345699")

	// An e-mail address can't add recipients to the mail that its link begins, and a link
	// is shown with its real address.
	hostile := w.writes("+34 612 34 56 71", "Rosa", "Hi")
	mei.post("/contacts/"+hostile.ContactID.String(), "email", "x?bcc=eve@e.example", "attributes.site", "https://a.example/\u202emoc").sends("/contacts/" + hostile.ContactID.String() + "?done=saved")
	mei.get("/inbox/"+hostile.ID.String()).want(200, `href="mailto:x%3Fbcc=eve@e.example"`, "<bdi>x?bcc=eve@e.example</bdi>", "<bdi>https://a.example/%E2%80%AEmoc</bdi>")
}
