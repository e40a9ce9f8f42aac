package yamlconf

import (
	"math"
	"strings"
)

// maxTypos is the maximum number of different characters in a suggestion. For short names it is a third of the
// length.
const maxTypos = 3

// Suggest returns "did you mean X?" for the most similar known name, or advice if no name is similar.
func Suggest[T ~string](name string, known []T, advice string) string {
	if near, ok := nearest(name, known); ok {
		return "did you mean " + string(near) + "?"
	}
	return advice
}

// maxName is longer than any name with a suggestion, in bytes. The time of editDistance is proportional to the length.
const maxName = 100

// nearest returns the most similar known name, and whether there is one.
func nearest[T ~string](name string, known []T) (near T, ok bool) {
	if len(name) > maxName {
		return near, false
	}
	most := max(1, min(len(name)/3, maxTypos))
	least := math.MaxInt
	for _, k := range known {
		distance, begun := editDistance(name, string(k)), strings.HasPrefix(string(k), name) // cert: cert_file
		if (begun || distance <= most) && distance < least {
			near, least, ok = k, distance, true
		}
	}
	return near, ok
}

// editDistance returns the Levenshtein distance of a and b.
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
