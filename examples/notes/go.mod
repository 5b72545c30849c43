module plugins/notes

go 1.24

require toolbay v0.0.0

replace toolbay => ./toolbay
