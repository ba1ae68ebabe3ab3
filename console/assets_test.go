package console

import (
	"strings"
	"testing"
)

func TestCompact(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"// All of it.\nconst a = 1; // one\n\tlet b\n":    "const a=1;let b\n",
		"const s = \"a // b\", u = 'http://x'; // \"c\"\n": "const s=\"a // b\",u='http://x';//\"c\"\n",
		"x = a + +b - -c\n":                                   "x=a+ +b- -c\n",
		"const r = /[/ ] \\/ /.test(s) && a / b / c\n":        "const r=/[/ ] \\/ /.test(s)&&a/b/c\n",
		"f(`a  ${ b ? `c ${ d }  e` : { g: 1 }.g }  h`, 2)\n": "f(`a  ${b?`c ${d}  e`:{g:1}.g}  h`,2)\n",
		"if (a) {\n\tb()\n}\nelse return [1]\n":               "if(a){b()}else return[1]\n",
		"const f = () => {\n\tg();\n};\nh();\n":               "const f=()=>{g()};h();",
		"const { größe } = o, s = \"\\\" 'x' \"\n":            "const{größe}=o,s=\"\\\" 'x' \"\n",
	} {
		if got := string(compact("x.js", []byte(in))); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	css := "/* One\n   two */\na :is(b, c) > d {\n  color: red;\n  margin: 0 1px;\n}\n@media (min-width: 9px) and (hover) {\n  a { b: c; }\n}\n"
	if got := string(compact("x.css", []byte(css))); got != "a :is(b,c) > d{color:red;margin:0 1px;}\n@media (min-width:9px) and (hover){a{b:c}\n}\n" {
		t.Errorf("%q", got)
	}
	if got := string(compact("x.svg", []byte("<svg>  // </svg>"))); !strings.Contains(got, "  // ") {
		t.Errorf("%q", got)
	}
}
