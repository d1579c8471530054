import { expect, it } from 'vitest';
import { loadCommands } from '../../src/cli/commands.ts';
import { isSecretFlag } from '../../src/cli/kit/usage.ts';
import { portcullis } from '../support/cli/in-process.ts';

const COMMANDS = await loadCommands();

const SECRET = 'hunter2-and-more';

it.each(COMMANDS.map(({ name }) => name))(
  'D1-12: %s rejects a secret in a flag, says where to put it, and does not repeat it',
  async (name) => {
    for (const flag of ['--password', '--client-secret', '--token', '--database-url', '-p']) {
      for (const given of [[flag, SECRET], [flag.startsWith('--') ? `${flag}=${SECRET}` : `${flag}${SECRET}`]]) {
        const { code, out, err } = await portcullis([...name.split(' '), ...given]);
        expect({ code, out }).toEqual({ code: 2, out: '' });
        expect(err).toMatch(/do not put a secret on a command line.*Pipe a password in/);
        expect(err).not.toContain(SECRET);
      }
    }
  },
);

it.each([`--password=${SECRET}`, `--token=${SECRET}\nof two lines`, `-p${SECRET}`, `-p=${SECRET}`])(
  'D1-12: %s before any command is rejected with where to put it, and is not repeated',
  async (given) => {
    const { code, out, err } = await portcullis([given, 'client', 'list']);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(/do not put a secret on a command line.*Pipe a password in/);
    expect(err).not.toContain(SECRET);
  },
);

it('D1-12: no command has a flag for a secret', () => {
  const flags = COMMANDS.flatMap((command) => Object.keys(command.flags ?? {}));
  expect(flags.filter(isSecretFlag)).toEqual([]);
});

it.each([
  ['password', true],
  ['jwt_secret', true],
  ['redis-url', true],
  ['Password', true],
  ['passing', false],
  ['token-duration', false],
  ['', false],
])('--%s is a flag for a secret: %s', (name, expected) => {
  expect(isSecretFlag(name)).toBe(expected);
});
