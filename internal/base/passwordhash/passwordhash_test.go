package passwordhash

import (
	"fmt"
	"strings"
	"testing"
)

// hashes contains hashes of other programs with their passwords. The bcrypt and SHA-crypt hashes come from crypt(3) of
// libxcrypt. The yescrypt hashes come from `mkpasswd -m yescrypt` of Debian 12 (whois 5.5.17), where -R is the cost, and
// from crypt of its Perl (libxcrypt 4.4.33) for special salts and passwords.
var hashes = []struct{ name, hash, password string }{
	{"argon2id", "$argon2id$v=19$m=8,t=1,p=1$4RtGSB4BBxL3TKEdVeZQWQ$+ksVq8D/o9KnRp1aLQ78v/DBAkDO6if5PXA++CTwFSo",
		"correct horse"},
	{"bcrypt-2b", "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e", "correct horse"},
	{"bcrypt-2y", "$2y$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2", "correct horse"},
	{"bcrypt-2a-of-more-than-72-bytes", "$2a$04$abcdefghijklmnopqrstuubzadhGtS2zEF.gu0yd0opP6cVzb.e0i",
		strings.Repeat("x", 80)},
	{"sha-512",
		"$6$saltsaltsalt$Cy2drr8kDRji6smvDcT28wkqtq0R0VzVL5CkrjPQCITc5d/31j94knt9rGTcVSyjLXfjsiIsBh5ee8qR/3QDx1",
		"correct horse"},
	{"sha-512-unicode", "$6$abc$pKOE2ximO9ErGKshoVYZcwBn0M8z1v/N72ULQ.3UHpddT6qthCTKZ8bDaDESiuSMJPMJUO4Qv7JaW0IfmsfJJ/",
		"motdepasse\u0301"},
	{"sha-512-latin-1",
		"$6$latin$J.jIsiMcVG1AAAhaQ2AP8eut2y//edcvIWb2/3PA9q31ZAuH3j4NdYqlZjcBhHKwvC7L8JfLvGgx3xss4KzJE.", "\xe9t\xe9"},
	{"sha-512-rounds",
		"$6$rounds=1000$roundsalt$q2bLN6X16G97cfEqLyrh8k.ss1.YGH35fGnWXezDq0.nzLjqhyUAyS1bkt.tEcKYUBYxRyOH1YgRZZXF.4glP1", "correct horse"},
	{"sha-512-longest-salt",
		"$6$sixteencharacter$T0PdyOgF61EPCZn/Ma3Vii67pweA70KYagPI1aaC8zylNpNuFwMUd/9LHc6lKlo6bjUQIv8eG1CgRShqsSdlq/",
		"a"},
	{"sha-512-no-salt", "$6$$ek/ucQg0IM8SQLyD2D66mpoW0vAF26eA0/pqoN95V.F0nZh1IFuENNo0OikacRkDBk5frNqziMYMdVVrQ0o.51",
		"a"},
	{"sha-256", "$5$saltsalt$myjXcpMpE2Ofk7fj9hqyNYSn6lmWG4Mqnjx.KIRRr4/", "correct horse"},
	{"sha-256-longest-password", "$5$long$PCKSSP3yBQa/mdHzUkYL0Q0Qjv5t.8xSWJxhc84otZ/",
		strings.Repeat("y", maxSHAPassword)},
	{"yescrypt", "$y$j9T$d4qUN8X7eG.d19gP89qX00$dqQE977h25WkNsAJOQGd3aiGG4mXveH6GffoVYab9gC", "correct horse"},
	{"yescrypt-cost-1", "$y$j75$vQvDWKGBFKhupftlx/C791$R9nnQMM6G1Ilh0suP/nz5Q4g/UC6Fz.RX0zhnJ41Wr9", "correct horse"},
	{"yescrypt-cost-2", "$y$j85$v5MnVAX5hS5puV37TzT4j/$zQjlEzneAHZ/xyD0AJBuCLv0gp2Bp8GRg57k9w/csT1", "correct horse"},
	{"yescrypt-cost-3", "$y$j7T$TubwNsed6/g8zcBjeSkUd0$B17UwN/vp/wL5rPIPtU9FdAUaXYnIMQ.QtKc.8zwb19", "correct horse"},
	{"yescrypt-cost-6", "$y$jAT$wSgqNdNOwKlNQTH.sg1TQ.$DhORGHui5l57HrjxT3jyvR5N/FAdNGF1krhUqE0xIk6", "correct horse"},
	{"yescrypt-small-blocks", "$y$j7.$saltsalt$ASUHiqGbn21CKzIFwLu.YHTxIW2rtv5eeGwqZe9MMA7", "correct horse"},
	{"yescrypt-no-salt", "$y$j75$$6BUZ57Ppq1XCOI8LGmraG8XOzb1ERDdNMwVQ/ANg0pD", "correct horse"},
	{"yescrypt-longest-salt", "$y$j75$" + strings.Repeat("/", maxYescryptSalt) +
		"$xb1fl.pIJfX0SiTCQxB98wG877HHRHn0C/wOeLfvYM6", "x"},
	{"yescrypt-latin-1", "$y$j75$saltsalt$38qtVjULAFaKSLJzAF/3jAiDHZ6fsHH4wogmJho99M5", "\xe9t\xe9"},
	{"yescrypt-unicode", "$y$j75$saltsalt$KFhSiKMCwv.YZvsasP8zG/ZlKBQbYak403luQa0mwB/", "motdepasse\u0301"},
	{"yescrypt-longest-password", "$y$j75$saltsalt$fh5crgTrgW7YknR/MovbLePL8xdZIqU7H2jY1sTyQ4C",
		strings.Repeat("x", maxYescryptPassword)},
}

// matches compares a password with a hash.
func matches(text, password string) (bool, error) {
	h, err := read(text)
	return err == nil && h.matches(prepare(password)), err
}

func TestMatches(t *testing.T) {
	for _, tc := range hashes {
		t.Run(tc.name, func(t *testing.T) {
			if problem := Problem(tc.hash); problem != "" {
				t.Fatal(problem)
			}
			for password, want := range map[string]bool{
				tc.password: true, "": false, "wrong": false, "y" + tc.password: false,
				strings.Repeat("z", 5000): false,
			} {
				if got, err := matches(tc.hash, password); err != nil || got != want {
					t.Errorf("%q matches: got %v, %v; want %v", password, got, err, want)
				}
			}
		})
	}
}

func TestNew(t *testing.T) {
	hash, err := New("cafe\u0301")
	if err != nil || Problem(hash) != "" {
		t.Fatal(hash, Problem(hash), err)
	}
	if match, err := matches(hash, "caf\u00e9"); err != nil || !match {
		t.Errorf("the composed form of the password: %v, %v", match, err)
	}
}

func TestProblem(t *testing.T) {
	bcrypt := "$2b$%s$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e"
	sha512 := "$6$%ssalt$" + strings.Repeat("a", 86)
	argon2id := "$argon2id$v=19$%s$4RtGSB4BBxL3TKEdVeZQWQ$+ksVq8D/o9KnRp1aLQ78v/DBAkDO6if5PXA++CTwFSo"
	yescrypt := "$y$%s$saltsalt$" + strings.Repeat("a", 43)
	const incomplete = "is not a complete yescrypt hash"
	const unknown = "is not a hash of argon2id, yescrypt, bcrypt, SHA-512 crypt or SHA-256 crypt"
	for text, want := range map[string]string{
		"":                             "is not a password hash; passwords are not kept in plain text",
		"secret":                       "is not a password hash; passwords are not kept in plain text",
		"$":                            unknown,
		"$1$abcdefgh$pJi8JvVNPHFzgbD.": unknown,
		"$gy$j9T$gFfHcIH4jedCxT8E.N7mp/$yqMUgPLrQ3m2kxZOfd5kqNY9nenQQcDdWZBrXQcjF30":       unknown, // GOST
		"$7$CU..../....zG5ea1zKn3q6MHkxWhTPA.$yeUmxq/nMhIM8MiiWz9h6/OhIw5win96Z9uE3hstGk6": unknown, // scrypt
		"$argon2i$v=19$m=8,t=1,p=1$c29tZXNhbHQ$RdescudvJCsgt3ub":                           unknown,
		"$argon2id$":                               "is not an argon2id hash in the PHC string format",
		fmt.Sprintf(argon2id, "m=8,t=0,p=1"):       "has parameters too weak for argon2id",
		fmt.Sprintf(argon2id, "m=8192,t=2048,p=1"): "", // pure-pw of a fast machine has t=511
		fmt.Sprintf(argon2id, "m=8192,t=2049,p=1"): "has parameters that would make each login too expensive",
		fmt.Sprintf(argon2id, "m=1048577,t=1,p=1"): "has parameters that would make each login too expensive",
		"$2b$":                    "is not a complete bcrypt hash",
		fmt.Sprintf(bcrypt, "03"): "is not a complete bcrypt hash",
		fmt.Sprintf(bcrypt, "x4"): "is not a complete bcrypt hash",
		fmt.Sprintf(bcrypt, "16"): "",
		fmt.Sprintf(
			bcrypt, "17"): "has parameters that would make each login too expensive: its cost is above 16",
		fmt.Sprintf(
			bcrypt, "04")[1:]: "is not a password hash; passwords are not kept in plain text",
		fmt.Sprintf(bcrypt, "04") + "x":                         "is not a complete bcrypt hash",
		strings.Replace(fmt.Sprintf(bcrypt, "04"), "j", "!", 1): "is not a complete bcrypt hash",
		"$6$":            "is not a complete SHA-512 or SHA-256 hash of crypt",
		"$5":             "is not a complete SHA-512 or SHA-256 hash of crypt",
		"$6$salt":        "is not a complete SHA-512 or SHA-256 hash of crypt",
		"$6$rounds=5000": "is not a complete SHA-512 or SHA-256 hash of crypt",
		"$6$rounds=$":    "is not a complete SHA-512 or SHA-256 hash of crypt",
		strings.Replace(sha512, "%s", "seventeencharac", 1): "is not a complete SHA-512 or SHA-256 hash of crypt",
		fmt.Sprintf(sha512, "rounds=-1$"):                   "is not a complete SHA-512 or SHA-256 hash of crypt",
		fmt.Sprintf(sha512, "rounds=999$"):                  "has parameters too weak for SHA-crypt",
		fmt.Sprintf(sha512, "rounds=2000000$"):              "",
		fmt.Sprintf(
			sha512, "rounds=2000001$"): "has parameters that would make each login too expensive",
		fmt.Sprintf(sha512, "") + "a":                             "is not a complete SHA-512 or SHA-256 hash of crypt",
		strings.Replace(fmt.Sprintf(sha512, ""), "aaa", "a=a", 1): "is not a complete SHA-512 or SHA-256 hash of crypt",
		"$y$":                              incomplete,
		"$y$j9T":                           incomplete,
		"$y$j9T$saltsalt":                  incomplete,
		"$y$j9T$saltsalt$":                 incomplete,
		fmt.Sprintf(yescrypt, "j9T"):       "",
		fmt.Sprintf(yescrypt, "jFT"):       "", // 1 GiB, the most expensive hash of mkpasswd
		fmt.Sprintf(yescrypt, "jGT"):       "has parameters that would make each login too expensive",
		fmt.Sprintf(yescrypt, "jFU"):       "has parameters that would make each login too expensive",
		fmt.Sprintf(yescrypt, "jz."):       "has parameters that would make each login too expensive",
		fmt.Sprintf(yescrypt, "j6T"):       "has parameters too weak for yescrypt",
		fmt.Sprintf(yescrypt, "/75"):       "has parameters of yescrypt that are not supported", // other flags
		fmt.Sprintf(yescrypt, "j8./1/"):    "has parameters of yescrypt that are not supported", // with p or t
		fmt.Sprintf(yescrypt, "j9!"):       "has parameters of yescrypt that are not supported",
		fmt.Sprintf(yescrypt, "j9"):        "has parameters of yescrypt that are not supported",
		fmt.Sprintf(yescrypt, "j9T") + "$": incomplete,
		strings.Replace(fmt.Sprintf(yescrypt, "j9T"), "aa", "a", 1):                           incomplete,
		strings.Replace(fmt.Sprintf(yescrypt, "j9T"), "aa", "a=", 1):                          incomplete,
		strings.Replace(fmt.Sprintf(yescrypt, "j9T"), "saltsalt", "s", 1):                     incomplete, // 6 bits
		strings.Replace(fmt.Sprintf(yescrypt, "j9T"), "saltsalt", strings.Repeat("s", 87), 1): incomplete,
	} {
		if got := Problem(text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	if match, err := matches("$1$abc", "x"); match || err == nil {
		t.Errorf("unknown hash: got %v, %v", match, err)
	}
}

// A hash that is not argon2id can be replaced by one of the same password. bcrypt accepts several long passwords, so
// the one that was typed may be another.
func TestIsWeaker(t *testing.T) {
	for _, tc := range hashes {
		if got, want := IsWeaker(tc.hash, tc.password), !strings.HasPrefix(tc.hash, "$argon2id$") &&
			tc.name != "bcrypt-2a-of-more-than-72-bytes"; got != want {
			t.Errorf("%s: %t, want %t", tc.name, got, want)
		}
	}
	if IsWeaker("$1$abc", "x") || IsWeaker("", "") {
		t.Error("something that is not a hash is replaced")
	}
}

// BenchmarkMatches measures the cost of comparisons.
func BenchmarkMatches(b *testing.B) {
	for _, hash := range []string{
		"$argon2id$v=19$m=19456,t=2,p=1$4RtGSB4BBxL3TKEdVeZQWQ$+ksVq8D/o9KnRp1aLQ78v/DBAkDO6if5PXA++CTwFSo",
		"$2b$10$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e",
		"$6$salt$" + strings.Repeat("a", 86),
		"$5$salt$" + strings.Repeat("a", 43),
		"$y$j9T$saltsalt$" + strings.Repeat("a", 43),
	} {
		b.Run(hash[:4], func(b *testing.B) {
			for b.Loop() {
				if _, err := matches(hash, "correct horse"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
