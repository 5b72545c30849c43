module plugins/five

go 1.24

require toolbay v0.0.0

replace toolbay => ./toolbay
