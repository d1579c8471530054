const SECRET_WORDS = new Set([
  'p',
  'pass',
  'passwd',
  'password',
  'passphrase',
  'pwd',
  'secret',
  'secrets',
  'token',
  'pepper',
  'key',
  'credentials',
  'url',
]);

/** What whoever writes a secret as a flag is told. */
export const SECRET_ADVICE =
  "a secret never goes on a command line, where ps and the shell's history keep it. " +
  'Pipe a password in (… < password.txt); what a server is reached and signed with stands in the environment';

/** Whether an unknown flag, without its dashes, is one to give a secret with: `password`, `client-secret`, `database-url`. */
export function isSecretFlag(name: string): boolean {
  return SECRET_WORDS.has(name.toLowerCase().split(/[-_]/).at(-1) ?? '');
}
