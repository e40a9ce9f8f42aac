// The tests of secsy/goftp, which make clients runs. To move them on:
// go get -modfile=tools/goftp.mod -t github.com/secsy/goftp@VERSION
module github.com/babelftp/babelftp/tools/goftp

go 1.26.0

require github.com/secsy/goftp v0.0.0-20200609142545-aa2de14babf4 // indirect
