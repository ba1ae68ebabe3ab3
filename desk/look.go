package desk

// A Look is what a template shows besides its title and message, and samples for its
// variables. The provider's reviewers saw it; a send needs none of it.
type Look struct {
	Footer  string
	Buttons []string          // what is on them
	Samples map[string]string // by variable address; not for all
}

// readLook reads the look from the components, and skips what it does not understand.
func (t *Template) readLook(components []any) {
	t.Look.Samples = map[string]string{}
	for _, v := range components {
		c, _ := v.(map[string]any)
		text, _ := c["text"].(string)
		example, _ := c["example"].(map[string]any)
		switch typeMember(c, "type") {
		case "HEADER":
			titles, _ := example["header_text"].([]any)
			t.readSamples(PartHeader, titles, example["header_text_named_params"])
		case "BODY":
			rows, _ := example["body_text"].([]any)
			if len(rows) > 0 {
				if first, nested := rows[0].([]any); nested {
					rows = first
				}
			}
			t.readSamples(PartBody, rows, example["body_text_named_params"])
		case "FOOTER":
			if t.Look.Footer == "" {
				t.Look.Footer = storable(text)
			}
		case "BUTTONS":
			buttons, _ := c["buttons"].([]any)
			for _, v := range buttons {
				b, _ := v.(map[string]any)
				if label, _ := b["text"].(string); storable(label) != "" {
					t.Look.Buttons = append(t.Look.Buttons, label)
				}
			}
		}
	}
}

// readSamples reads the samples of a part: values for the variables 1, 2, 3 and so on, or
// by name.
func (t *Template) readSamples(part Part, values []any, named any) {
	samples := map[string]string{}
	params, _ := named.([]any)
	for _, v := range params {
		p, _ := v.(map[string]any)
		name, _ := p["param_name"].(string)
		samples[name], _ = p["example"].(string)
	}
	n := 0
	for _, v := range t.Variables {
		if v.Part != part {
			continue
		}
		sample := samples[v.Key]
		if sample == "" && n < len(values) {
			sample, _ = values[n].(string)
		}
		if n++; storable(sample) != "" {
			t.Look.Samples[v.Address()] = sample
		}
	}
}

// storable is a text that can be stored, otherwise "".
func storable(text string) string {
	if checkStorable(text) != nil {
		return ""
	}
	return text
}

// A Piece is a part of a template's text: plain text, or one variable.
type Piece struct {
	Text    string // of a variable: its placeholder
	Address string // of a variable; "" for plain text
}

// Pieces splits the text of a part at its variables.
func (t *Template) Pieces(part Part) (list []Piece) {
	text := t.Body
	if part == PartHeader {
		text = t.Header
	}
	from := 0
	for _, at := range placeholder.FindAllStringIndex(text, -1) {
		if at[0] > from {
			list = append(list, Piece{Text: text[from:at[0]]})
		}
		match := text[at[0]:at[1]]
		list = append(list, Piece{Text: match, Address: Variable{part, placeholderKey(match)}.Address()})
		from = at[1]
	}
	if from < len(text) {
		list = append(list, Piece{Text: text[from:]})
	}
	return list
}
