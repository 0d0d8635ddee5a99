package director

// Table is a table of numbers.
type Table = table[int]

// TableOf makes a table of a list, TableList a list of a table, TableSet one
// that differs in an element.
func TableOf(list []int) Table   { return tableOf(list) }
func TableList(t Table) []int    { return t.list() }
func TableAt(t Table, i int) int { return *t.at(i) }
func TableSet(t Table, i, v int) Table {
	*t.edit(i) = v
	return t
}

// FormatTexts returns the texts that events hold, by the names of their constants.
func FormatTexts() map[string]string {
	return map[string]string{
		"causeStart": causeStart, "causeChoice": causeChoice, "causeObjective": causeObjective, "causeBeat": causeBeat,
		"causeDeadline": causeDeadline, "causeTurn": causeTurn, "causeFlag": causeFlag, "causeSemantic": causeSemantic,
		"causeKeyword": causeKeyword, "causeBudget": causeBudget, "causeMention": causeMention, "causeRevised": causeRevised,
		"failureExpired": failureExpired, "methodForced": methodForced,
		"inputNameNone": inputNameNone, "inputNameText": inputNameText, "inputNameChoice": inputNameChoice,
		"ModeReplacement": ModeReplacement, "ModeFloating": ModeFloating,
		"Verified": Verified, "Assumed": Assumed, "Forced": Forced,
	}
}
