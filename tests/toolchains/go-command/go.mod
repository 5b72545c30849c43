module local/command

go 1.24
