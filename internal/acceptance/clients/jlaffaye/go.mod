module github.com/babelftp/babelftp/internal/acceptance/clients/jlaffaye

go 1.26

require github.com/jlaffaye/ftp v0.2.4
