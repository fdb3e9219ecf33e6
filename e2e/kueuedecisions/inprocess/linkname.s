// With this file, the package may declare functions without bodies: see seams.go.
