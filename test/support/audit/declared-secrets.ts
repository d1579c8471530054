import { globSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type GraphQLSchema, getNamedType, isInputObjectType } from 'graphql';
import { z } from 'zod';
import { SECRETS } from '../../../src/audit/masked-names.ts';
import { isSecretInput } from '../../../src/lib/input.ts';
import { ROOT } from '../start/process.ts';

/** A text member of an input. */
export interface Member {
  /** Where it is declared: its file, its schema and its name. */
  at: string;
  name: string;
  schema: z.ZodType;
}

/** The members of a schema that are texts, at any depth. */
function membersOf(schema: unknown, at: string, name = ''): Member[] {
  if (schema instanceof z.ZodObject) {
    return Object.entries(schema.shape).flatMap(([member, inner]) => membersOf(inner, `${at}.${member}`, member));
  }
  if (schema instanceof z.ZodPipe) {
    return [schema.def.in, schema.def.out].flatMap((inner) => membersOf(inner, at, name));
  }
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodCatch) {
    return membersOf(schema.def.innerType, at, name);
  }
  if (schema instanceof z.ZodArray) return membersOf(schema.def.element, at, name);
  return schema instanceof z.ZodString ? [{ at, name, schema }] : [];
}

/** The text members of every exported schema of an input. */
export async function inputMembers(): Promise<Member[]> {
  const files = globSync('src/**/*.input.ts', { cwd: ROOT });
  const modules = await Promise.all(
    files.map(async (file) => [basename(file, '.input.ts'), await import(join(ROOT, file))] as const),
  );
  return modules.flatMap(([file, module]) =>
    Object.entries(module).flatMap(([exported, value]) => {
      const all = value instanceof z.ZodType ? { '': value } : Object(value);
      return Object.entries(all).flatMap(([name, schema]) =>
        membersOf(schema, [file, exported, name].filter(Boolean).join('.'), name),
      );
    }),
  );
}

/** The arguments of a schema, and the members of their types, that are secrets by their name or their declaration. */
export function secretArguments(schema: GraphQLSchema): string[] {
  const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
  return roots
    .flatMap((root) => Object.values(root?.getFields() ?? {}))
    .flatMap((field) => secretsIn(field.args, field.name));
}

type Inputs = Parameters<typeof isSecretArgument>[0][];

function secretsIn(inputs: readonly Inputs[number][], at: string): string[] {
  return inputs.flatMap((input) => {
    const type = getNamedType(input.type);
    if (isInputObjectType(type)) return secretsIn(Object.values(type.getFields()), `${at}.${input.name}`);
    return isSecretArgument(input) ? [`${at}.${input.name}`] : [];
  });
}

function isSecretArgument({
  name,
  extensions,
}: {
  name: string;
  type: Parameters<typeof getNamedType>[0];
  extensions: Readonly<Record<string, unknown>>;
}): boolean {
  const { validate } = Object(extensions.pothosOptions);
  const { schema } = Object(validate);
  return SECRETS.isSecretKey(name) || (schema instanceof z.ZodType && isSecretInput(schema));
}
