const SYNTAX_ERROR = 'Syntax Error: ';
/** Tokens that can be a value, or a piece of one, as a syntax error quotes them; likewise a broken escape. */
const TOKEN = /\b(Name|Int|Float|String|BlockString|Comment) ".*"/s;
const ESCAPE = /(escape sequence): ".*"/s;
/** What follows the expectation is the value to the end, or only a suggestion lies between: a name of the schema. */
const FOUND = /[,;] found: .*$/s;
const FOUND_BEHIND_SUGGESTION = /\? Found: .*$/s;
const NOT_REPRESENTED = /( cannot represent (?:[\w -]{1,40} )?value): .*$/s;
const OPERATION = /^(Unknown operation named) "(?![_A-Za-z]\w*"\.$).*"/s;
const ENUM_VALUE = { before: 'Value "', behind: '" does not exist in "' };

/**
 * A message of the engine (graphql-js) without the values that it quotes of what was sent, any of which may be a secret:
 * which variable or argument is at fault, where in it and what was expected there stays. Every other message is itself.
 * Takes time in proportion to the length of the message.
 */
export function withoutGivenValues(message: string): string {
  if (message.startsWith(SYNTAX_ERROR)) return message.replace(TOKEN, '$1').replace(ESCAPE, '$1');
  const told = message
    .replace(FOUND, '.')
    .replace(FOUND_BEHIND_SUGGESTION, '?')
    .replace(NOT_REPRESENTED, '$1.')
    .replace(OPERATION, '$1 so');
  return withoutEnumValue(told);
}

function withoutEnumValue(message: string): string {
  const from = message.indexOf(ENUM_VALUE.before);
  const to = message.lastIndexOf(ENUM_VALUE.behind);
  return from < 0 || to < from ? message : `${message.slice(0, from)}The value${message.slice(to + 1)}`;
}
