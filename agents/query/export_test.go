package query

// Unquoted replaces the escapes of JSON strings.
var Unquoted = unquoted
