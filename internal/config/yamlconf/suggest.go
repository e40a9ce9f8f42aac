package yamlconf

import "strings"

// maxTypos is how many characters a suggested name may differ in; a third of a short name.
const maxTypos = 3

// Suggest asks "did you mean X?" for the known name that is nearest to name, or returns advice when none is near.
func Suggest[T ~string](name string, known []T, advice string) string {
	nearest, least := T(""), max(1, min(len(name)/3, maxTypos))+1
	for _, k := range known {
		distance := editDistance(name, string(k))
		if strings.HasPrefix(string(k), name) { // cert for cert_file
			distance = 1
		}
		if distance < least {
			nearest, least = k, distance
		}
	}
	if nearest == "" {
		return advice
	}
	return "did you mean " + string(nearest) + "?"
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
