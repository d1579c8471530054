/** What an error means to a person, by its code, its type, or what is taken. No text of the API is shown as it is. */
const ERRORS: Readonly<Record<string, string>> = {
  ValidationError: 'Something in the form needs another value.',
  BAD_USER_INPUT: 'The address of this page, or something in the form, has a value that is not possible.',
  NotFoundError: 'It no longer exists, or belongs to another tenant.',
  NOT_FOUND: 'It no longer exists, or belongs to another tenant.',
  ForbiddenError: 'You may not do this.',
  FORBIDDEN: 'You may not see this.',
  DuplicateError: 'It exists already.',
  duplicate_id: 'This id is taken.',
  duplicate_email: 'This email is taken.',
  duplicate_external_id: 'This external id is taken.',
  duplicate_wallet: 'This wallet address is taken.',
  duplicate_username: 'This username is taken.',
  PAGE_TOO_LARGE: 'There is too much to show at once.',
  RATE_LIMITED: 'Too many requests. Wait a minute, then try again.',
  rate_limit_exceeded: 'Too many requests. Wait a minute, then try again.',
  monthly_limit_exceeded: 'The requests of this month are used up. Ask your administrator.',
  service_unavailable: 'The server is busy or not ready. Try again in a minute.',
  bad_gateway: 'The server cannot be reached. Try again in a minute.',
  gateway_timeout: 'The server did not respond in time. Try again.',
  payload_too_large: 'This is too large to be sent.',
  SLOW_CONSUMER: 'Updates came faster than this page could show them. Try again.',
  STOPPING: 'The server is being restarted. Try again in a minute.',
};

/** Returns a text that begins with a capital and ends with a full stop. */
export const asSentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?…]$/.test(text) ? '' : '.'}`;

/** Returns what an error means: a sentence for its code, or its message as one. */
export function errorSentence(code: string, message: string): string {
  // GraphQL names the variable that it refuses.
  return ERRORS[message.startsWith('Variable "') ? 'BAD_USER_INPUT' : code] ?? asSentence(message);
}

/** What is wrong with a value, by the beginning of what the API says of it. */
const ISSUES: readonly (readonly [says: RegExp, means: (name: string) => string])[] = [
  [/^is wrong, or was wrong too often/, (name) => `${name} is wrong.`],
  [
    /^must be a UUID/,
    (name) => `Choose ${/^[A-Z][a-z]/.test(name) ? name.charAt(0).toLowerCase() + name.slice(1) : name} from the list, or paste its whole id.`,
  ],
  [/^(?:is required|must be a string|must not be empty|must not be blank)/, (name) => `${name} is missing.`],
  [/^must be a number/, (name) => `${name} must be a number, with a point: 0.5.`],
];

/** Returns a sentence about a value by its name on the page. */
export function issueSentence(name: string, message: string): string {
  const means = ISSUES.find(([says]) => says.test(message))?.[1];
  if (means) return means(name);
  return asSentence(/^(?:must|may|is|are|has|have|can|cannot|does|was|needs)\b/.test(message) ? `${name} ${message}`.trim() : message);
}
