import { copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { blocksOf } from '../support/docs/markdown.ts';
import { runCommand } from '../support/services/commands.ts';
import { ROOT } from '../support/start/process.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-typed-'));
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  await copyFile(join(ROOT, 'schema/schema.graphql'), join(folder, 'schema.graphql'));
  await mkdir(join(folder, 'src'));
});
afterAll(() => rm(folder, { recursive: true }));

const OPERATIONS = `
  query Wallet($id: ID!) {
    wallet(id: $id) {
      rules(first: 1) {
        edges {
          node {
            createdAt
            autoTransferRule { type amount ruleLogic }
            permissionlessTransferLimitRule { timePeriod maxAmount }
          }
        }
      }
    }
  }
  mutation Migrate($file: File!) {
    startUserMigration(file: $file) { ... on Migration { status } ... on ValidationError { message } }
  }
  mutation Create($walletId: ID!, $input: WalletRuleInput!) {
    createWalletRule(walletId: $walletId, input: $input) { ... on WalletRule { id } }
  }
  mutation One($input: MigrateUserInput!) {
    migrateUser(input: $input) { ... on DuplicateError { reason } }
  }
`;

/** Compiles only if each scalar and closed list has the type that the page promises. */
const CALLER = `
import type { CreateMutationVariables, MigrateMutationVariables, OneMutation, WalletQuery } from './generated/graphql.ts';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
type Rule = NonNullable<WalletQuery['wallet']>['rules']['edges'][number]['node'];
type Transfer = NonNullable<Rule['autoTransferRule']>;
type Limit = NonNullable<Rule['permissionlessTransferLimitRule']>;
type Reason = Extract<OneMutation['migrateUser'], { reason: unknown }>['reason'];

export const checks: [
  Equal<Rule['createdAt'], string>,
  Equal<Transfer['amount'], string>,
  Equal<Transfer['ruleLogic'], unknown>,
  Equal<Transfer['type'], 'auto' | 'auto_with_approve'>,
  Equal<Limit['timePeriod'], 'day' | 'hour' | 'month' | 'week' | 'year'>,
  Equal<Reason, \`duplicate_\${'email' | 'external_id' | 'id' | 'username' | 'wallet'}\`>,
  Equal<MigrateMutationVariables['file'], Blob | null>,
  Equal<NonNullable<CreateMutationVariables['input']['autoTransferRule']>['amount'], string | number>,
] = [true, true, true, true, true, true, true, true];
`;

it('D8-02: the documented codegen configuration generates types for every scalar and enum', async () => {
  const [block] = blocksOf('docs/quickstart/dashboard.md').filter(({ lang }) => lang === 'yaml');
  await writeFile(join(folder, 'codegen.yml'), block?.text ?? '');
  await writeFile(join(folder, 'src/operations.graphql'), OPERATIONS);
  await writeFile(join(folder, 'src/caller.ts'), CALLER);
  const bin = join(ROOT, 'node_modules/.bin');
  await runCommand(join(bin, 'graphql-codegen'), ['--config', 'codegen.yml'], { cwd: folder });
  const options = '--noEmit --strict --target es2022 --lib es2022,dom --moduleResolution bundler'.split(' ');
  const more = ['--module', 'esnext', '--allowImportingTsExtensions', '--types', '', 'src/caller.ts'];
  await expect(runCommand(join(bin, 'tsc'), [...options, ...more], { cwd: folder })).resolves.toBe('');
}, 120_000);
