module toolbay

go 1.24
