# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Reads a header and writes C with one external function for each function in it. Arguments and result travel
# through memory, for BPF functions take five words and return one.

BEGIN { printf "#include <%s>\n", header }

/^PST_(INLINE|OUTLINE|STAGE) / { text = ""; inside = 1 }

inside {
	text = text " " $0
	if ($0 ~ /\)[ \t]*$/) {
		inside = 0
		wrap(text)
	}
}

function wrap(text,    start, before, name, result, list, count, i, types, names) {
	sub(/^ *PST_(INLINE|OUTLINE|STAGE) +/, "", text)
	gsub(/[ \t]+/, " ", text)
	start = index(text, "(")
	before = substr(text, 1, start - 1)
	list = substr(text, start + 1)
	sub(/\) *$/, "", list)
	match(before, /[A-Za-z0-9_]+$/)
	name = substr(before, RSTART)
	result = substr(before, 1, RSTART - 1)
	count = list == "void" ? 0 : split(list, types, ",")
	for (i = 1; i <= count; i++) {
		match(types[i], /[A-Za-z0-9_]+ *$/)
		names[i] = substr(types[i], RSTART)
	}
	printf "\nstruct wrap_%s {\n\tchar unused;\n", name
	for (i = 1; i <= count; i++)
		printf "\t%s;\n", types[i]
	printf "};\n"
	result = result ~ /^void *$/ ? "" : result
	printf "void wrap_%s(struct wrap_%s *in%s);\n", name, name, result ? ", " result " *out" : ""
	printf "void wrap_%s(struct wrap_%s *in%s)\n{\n\t", name, name, result ? ", " result " *out" : ""
	if (count == 0)
		printf "(void)in;\n\t"
	printf "%s%s(", result ? "*out = " : "", name
	for (i = 1; i <= count; i++)
		printf "%sin->%s", (i == 1 ? "" : ", "), names[i]
	printf ");\n}\n"
}
