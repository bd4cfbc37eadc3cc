// This file is empty on purpose: the Go compiler accepts a function without a body
// (newManagerImpl in incarnation.go) only in a package that has an assembly file.
