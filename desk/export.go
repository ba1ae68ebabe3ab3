package desk

import "time"

// ExportStill is how long an export waits for a reader that takes nothing (contract-data §4).
const ExportStill = 30 * time.Second
