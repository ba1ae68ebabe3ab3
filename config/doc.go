// Package config checks the settings of an installation once, when a process starts:
// where the data is, which key protects it, and where to listen. It reads no flags and
// no environment; the command line passes it the texts.
//
//	config.go  the settings and their defaults
//	secret.go  the secret key: from a text, or from DIR/secret.key
//	files.go   the data directory and private files in it
package config
