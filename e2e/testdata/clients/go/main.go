// A program like that of a user, with the client that oapi-codegen generates from the
// API description. It does the main job and reports errors.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	api "parley-generated/generated"
)

func main() {
	if err := run(context.Background(), os.Getenv("BASE"), os.Getenv("KEY")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, base, key string) error {
	c, err := api.NewClientWithResponses(base, api.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+key)
		return nil
	}))
	if err != nil {
		return err
	}
	kind := api.AttributeDefinitionTypeSelect
	attribute, err := c.UpsertAttributeWithResponse(ctx, api.AttributeDefinition{Key: "plan", Type: &kind, Options: &[]string{"free", "pro"}})
	if err != nil || attribute.JSON201 == nil {
		return fmt.Errorf("attribute: %v %s", err, attribute.Body)
	}

	var pro, gold api.AttributeInput
	if err := pro.FromAttributeInput0("pro"); err != nil {
		return err
	}
	if err := gold.FromAttributeInput0("gold"); err != nil {
		return err
	}
	text := func(s string) *string { return &s }
	ada := api.ContactUpsertRequest{ExternalId: text("go-1"), Name: text("Ada"), Phone: text("+1 202 555 0147"), Attributes: &map[string]*api.AttributeInput{"plan": &pro}}
	created, err := c.UpsertContactWithResponse(ctx, ada)
	if err != nil || created.JSON201 == nil {
		return fmt.Errorf("contact: %v %s", err, created.Body)
	}
	if v, err := created.JSON201.Data.Attributes["plan"].AsAttributeValue0(); err != nil || v != "pro" {
		return fmt.Errorf("the attribute is %q, %v", v, err)
	}
	if again, err := c.UpsertContactWithResponse(ctx, ada); err != nil || again.JSON200 == nil || again.JSON200.Data.Id != created.JSON201.Data.Id {
		return fmt.Errorf("again: %v %s", err, again.Body)
	}
	try := ada
	try.ExternalId, try.Phone, try.DryRun = text("go-3"), nil, new(bool)
	*try.DryRun = true
	tried, err := c.UpsertContactWithResponse(ctx, try)
	var would api.TriedContactAnswer // the response to a dry run has its own type
	if err != nil || json.Unmarshal(tried.Body, &would) != nil || tried.HTTPResponse.Header.Get("Dry-Run") != "true" || would.Data.Id != nil {
		return fmt.Errorf("a dry run: %v %s", err, tried.Body)
	}
	bad := ada
	bad.Attributes = &map[string]*api.AttributeInput{"plan": &gold}
	if refused, err := c.UpsertContactWithResponse(ctx, bad); err != nil || refused.JSON422 == nil || refused.JSON422.Error.Details[0].Key != "plan" {
		return fmt.Errorf("a bad value: %v %s", err, refused.Body)
	}

	var operations [2]api.BatchOperation
	for i, data := range []api.ContactUpsert{{ExternalId: text("go-2")}, {ExternalId: bad.ExternalId, Attributes: bad.Attributes}} {
		if err := operations[i].FromBatchUpsert(api.BatchUpsert{Data: data}); err != nil {
			return err
		}
	}
	batch, err := c.BatchContactsWithResponse(ctx, api.BatchRequest{Operations: operations[:]})
	if err != nil || batch.JSON200 == nil {
		return fmt.Errorf("batch: %v %s", err, batch.Body)
	}
	first, err := batch.JSON200.Results[0].ValueByDiscriminator()
	if row, ok := first.(api.UpsertedRow); err != nil || !ok || row.Index != 0 {
		return fmt.Errorf("the first row: %v %s", err, batch.Body)
	}
	second, err := batch.JSON200.Results[1].ValueByDiscriminator()
	row, ok := second.(api.FailedRow)
	if err != nil || !ok {
		return fmt.Errorf("the second row: %v %s", err, batch.Body)
	}
	problem, err := row.Error.ValueByDiscriminator()
	if p, ok := problem.(api.RowInvalidAttributesProblem); err != nil || !ok || p.Details[0].Key != "plan" {
		return fmt.Errorf("its error: %v %s", err, batch.Body)
	}

	list, err := c.ListContactsWithResponse(ctx, &api.ListContactsParams{ExternalId: text("go-1")})
	if err != nil || list.JSON200 == nil || len(list.JSON200.Data) != 1 {
		return fmt.Errorf("list: %v %s", err, list.Body)
	}
	templates, err := c.ListTemplatesWithResponse(ctx, &api.ListTemplatesParams{})
	if err != nil || templates.JSON200 == nil || len(templates.JSON200.Data) != 1 {
		return fmt.Errorf("templates: %v %s", err, templates.Body)
	}
	template := templates.JSON200.Data[0]
	var variables api.TemplateChoice_Variables
	if err := variables.FromTemplateChoiceVariables1(api.TemplateChoiceVariables1{template.Variables[0]: "Ada", template.Variables[1]: "A-77"}); err != nil {
		return err
	}
	sent, err := c.SendTemplateWithResponse(ctx, &api.SendTemplateParams{IdempotencyKey: text("go")}, api.SendRequest{
		To: api.Recipient{Phone: text("+12025550147")}, OptInConfirmed: true,
		Template: api.TemplateChoice{Name: template.Name, Language: template.Language, Variables: &variables},
	})
	if err != nil || sent.JSON201 == nil || sent.JSON201.Data.Conversation.ContactId != created.JSON201.Data.Id {
		return fmt.Errorf("send: %v %s", err, sent.Body)
	}
	return nil
}
