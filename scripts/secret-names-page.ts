import {
  FALSE_FRIENDS,
  JWK_MEMBERS,
  LABELS,
  SECRET_ENDINGS,
  SECRET_FORMS,
  SECRET_NAMES,
  TEXT_NAMES,
} from '../src/audit/secret-names.ts';

const HEAD = `# Names of secrets

Generated from \`src/audit/secret-names.ts\` by \`npm run -s schema\`. Audit records and logs show \`***\` as the value of a member, parameter, header, cookie,
GraphQL argument or variable with one of these names. Names are compared by their letters and digits alone, in NFKC and lower case: \`api_key\` stands for
\`apiKey\`, \`Api-Key\`, \`API KEY\` and \`apikey\`. Booleans and null are never masked; a list or an object is masked whole. Only an object in a response of
Portcullis's own GraphQL, under a name that ends in a listed one (\`changeOwnPassword\`), stays, with its members masked by their own names. A name
may be a path: of \`user.otp\`, \`user[otp]\` and \`otp[0]\` each name is compared. The value may have its name in a member beside it:
\`{"name": "password", "value": …}\`; the members ${LABELS.map(code).join(', ')} are read for \`value\`, and of a list of lists of two, the first for the second.

Every value of a form or query is text: there \`true\`, \`false\` and \`null\` are not masked, nor a number of at most 20 digits under \`seed\`. Of a form or
query with a secret, 1,024 pairs are compared, of a header value 128; what follows is masked whole. Texts, those of JSON members too, end at the first assignment to such a name (\`password: …\`, \`token=…\`, \`{"otp": …\`) and at credentials after \`Bearer\` or \`Basic\`,
also where they are escaped with percent signs or \`\\u\`, up to three times; what has more escapes is masked.

\`AUDIT_MASKED_NAMES\` adds names for every endpoint, and \`mask\` of an endpoint in \`gateway.yaml\` adds names for that one. \`unmask\` of an endpoint takes
names back; it is allowed for remote services only, not for \`password\`, \`token\`, \`secret\` and \`authorization\`, and \`config check\` prints it.

In a request target that ends in \`/graphql\`, or that no endpoint has, \`query\`, \`variables\` and \`extensions\` are masked whole, because a GraphQL document
can hold a secret under any name. Of the bodies of another service's GraphQL (the target ends in \`/graphql\`, or the body is JSON with a document as
\`query\`), only the lengths are recorded: an alias may show any secret under any name.
`;

const VALUES = `## Values that are masked under any name

These can be nothing else: private keys in PEM and in the formats of OpenSSH and PGP (\`-----BEGIN … PRIVATE KEY\`, up to their last line, also where the end
is cut off), extended private keys (\`xprv\`, \`yprv\`, \`zprv\`, \`tprv\`, \`uprv\`, \`vprv\`), JWTs, secrets of Standard Webhooks (\`whsec_\`), identities
of age (\`AGE-SECRET-KEY-\`) and key files of PuTTY (\`PuTTY-User-Key-File-\`). User and password are removed from every URL, with or without its scheme,
also where the password has characters that should have been escaped.

## What cannot be recognised

- A private key in hexadecimal or base64, a key in the wallet import format (WIF), and a Stellar or XRP seed, under a name that is not listed: such a text may
  as well be a hash, an address or an id.
- A mnemonic under another name, or in the middle of a text: its words are words.
- A PIN or one-time code under another name: it is a number.
- A list of numbers under \`seed\` or \`entropy\`.
- A segment of a path (\`/reset/hunter2\`).
- Credentials after another scheme than \`Bearer\` and \`Basic\` in a header that is not \`Authorization\` (\`X-Meta: Token 5f…\`).
- A name with another word than those of the table behind it (\`password_of_ada\`), a name of the table of exact names with another word in front (\`map_pin\`),
  and names that another word follows without any separation.
- The literals of a GraphQL document in the query of a GET to another service whose path does not end in \`/graphql\`.
- A name in a member that is not listed above (\`{"parameter": "pin", "content": …}\`), in a flat list of names and values, and beside its value in a form, in
  XML or in the first line of CSV. Bodies of XML are not recorded.
- A password in a URL that begins like a port (\`https://ada:443/x@host\`), that has white space, or both \`@\` and then \`/@\`, or that is longer than 256 characters and has characters
  that should have been escaped.
- A name in letters that only look like others (Cyrillic \`а\`).
- A key file of PuTTY as a list of its lines.
- A PEM private key that is encoded in base64 again, compressed, or encrypted.
- A secret in the text of a member without an assignment (\`"note": "it is hunter2"\`).

If a service takes secrets under other names, add the names, or set \`doNotLog\` for its endpoints.
`;

/** The text of docs/secret-names.md. */
export function secretNamesPage(): string {
  return [
    HEAD,
    section('Names, with any word in front, and a word of the next table behind, also in the plural', SECRET_ENDINGS),
    section('Words behind a name of the first table', SECRET_FORMS),
    section('Names as they are, after `x`, or in the plural', SECRET_NAMES),
    section('Names of text, of an object, or of a list that does not begin with a number', TEXT_NAMES),
    section('Members of an object that has a member `kty` (JWK)', JWK_MEMBERS),
    section('Names that are not masked', FALSE_FRIENDS),
    VALUES,
  ].join('\n');
}

function section(title: string, names: Readonly<Record<string, string>>): string {
  const rows = Object.entries(names).map(([name, reason]) => `| ${code(name)} | ${reason} |\n`);
  return `## ${title}\n\n| name | reason |\n|---|---|\n${rows.join('')}`;
}

function code(names: string): string {
  return names
    .split(', ')
    .map((name) => `\`${name}\``)
    .join(', ');
}
