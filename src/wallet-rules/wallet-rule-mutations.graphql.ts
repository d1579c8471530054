import type { Builder } from '../graphql/builder.ts';
import { parsedInput } from '../graphql/camel-input.ts';
import { ForbiddenError, NotFoundError, PreconditionError, ValidationError } from '../graphql/errors.ts';
import type { Refs } from '../graphql/refs.ts';
import { orMember } from '../graphql/refusals.ts';
import { walletRuleTextInput } from './wallet-rule.input.ts';
import type { WalletRuleInputType } from './wallet-rule-input.graphql.ts';
import type { WalletRuleStatusEnum } from './wallet-rule-type.graphql.ts';

interface MutationParts {
  input: WalletRuleInputType;
  status: WalletRuleStatusEnum;
}

const authScopes = { permission: 'wallet-rules:write' } as const;
const errorTypes = [ValidationError, NotFoundError, ForbiddenError];

/** Adds the mutations of wallet rules. */
export function addWalletRuleMutations(builder: Builder, { walletRule }: Refs, { input, status }: MutationParts): void {
  builder.mutationFields((t) => ({
    createWalletRule: t.field({
      type: walletRule,
      description: 'Creates an active rule. Needs wallet-rules:write.',
      authScopes,
      errors: {
        types: errorTypes,
        union: {
          name: 'CreateWalletRuleResult',
          description:
            'The rule; or ValidationError: `input` breaks a rule of REST; NotFoundError: the wallet; ForbiddenError: without wallet-rules:write.',
        },
      },
      args: {
        walletId: t.arg.id({ required: true, description: "The wallet's UUID." }),
        input: t.arg({ type: input, required: true, description: 'The rule.' }),
      },
      resolve: (_root, args, { services: { walletRules }, principal }) => {
        const content = parsedInput(walletRuleTextInput, args.input);
        return orMember(walletRules.create(principal.nodeId, args.walletId, content));
      },
    }),
    replaceWalletRule: t.field({
      type: walletRule,
      description: 'Replaces a rule in full and raises its version; its status stays. Needs wallet-rules:write.',
      authScopes,
      errors: {
        types: [...errorTypes, PreconditionError],
        union: {
          name: 'ReplaceWalletRuleResult',
          description:
            'The rule; or ValidationError: `input` breaks a rule of REST; NotFoundError: the wallet, or the rule in it; PreconditionError: it has another version than `ifVersion`; ForbiddenError: without wallet-rules:write.',
        },
      },
      args: {
        walletId: t.arg.id({ required: true, description: "The wallet's UUID." }),
        id: t.arg.id({ required: true, description: "The rule's UUID." }),
        input: t.arg({ type: input, required: true, description: 'The rule as it shall be.' }),
        ifVersion: t.arg.int({ description: 'Only where it has this version; otherwise PreconditionError.' }),
      },
      resolve: (_root, { walletId, id, ifVersion, input: given }, { services: { walletRules }, principal }) => {
        const content = parsedInput(walletRuleTextInput, given);
        const versions = typeof ifVersion === 'number' ? [ifVersion] : undefined;
        return orMember(walletRules.replace(principal.nodeId, { walletId, id }, content, versions));
      },
    }),
    setWalletRuleStatus: t.field({
      type: walletRule,
      description: 'Enables or disables a rule; a change raises its version. Needs wallet-rules:write.',
      authScopes,
      errors: {
        types: errorTypes,
        union: {
          name: 'SetWalletRuleStatusResult',
          description:
            'The rule; or NotFoundError: the rule; ForbiddenError: without wallet-rules:write; ValidationError: not at present.',
        },
      },
      args: {
        id: t.arg.id({ required: true, description: "The rule's UUID." }),
        status: t.arg({ type: status, required: true, description: 'The status that it gets.' }),
      },
      resolve: (_root, args, { services: { walletRules }, principal }) =>
        orMember(walletRules.setStatus(principal.nodeId, args.id, args.status)),
    }),
  }));
}
