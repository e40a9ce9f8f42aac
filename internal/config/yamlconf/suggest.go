package yamlconf

import (
	"math"
	"strings"
)

// maxTypos is how many characters a suggested name may differ in; a third of a short name.
const maxTypos = 3

// Suggest asks "did you mean X?" for the known name that is nearest to name, or returns advice when none is near.
func Suggest[T ~string](name string, known []T, advice string) string {
	if near, ok := nearest(name, known); ok {
		return "did you mean " + string(near) + "?"
	}
	return advice
}

// nearest is the known name that is nearest to name. It reports whether one is near.
func nearest[T ~string](name string, known []T) (near T, ok bool) {
	most := max(1, min(len(name)/3, maxTypos))
	least := math.MaxInt
	for _, k := range known {
		distance, begun := editDistance(name, string(k)), strings.HasPrefix(string(k), name) // cert for cert_file
		if (begun || distance <= most) && distance < least {
			near, least, ok = k, distance, true
		}
	}
	return near, ok
}

// editDistance is how many characters must be added, removed or replaced to turn a into b (Levenshtein).
func editDistance(a, b string) int {
	from, to := []rune(a), []rune(b)
	row := make([]int, len(to)+1) // distances of a prefix of from to the prefixes of to
	for j := range row {
		row[j] = j
	}
	for i, r := range from {
		diagonal := row[0]
		row[0] = i + 1
		for j, q := range to {
			replaced := diagonal
			if r != q {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(to)]
}
