import type { GraphQLField } from 'graphql';
import type { FeatureServices } from '../../shared/services.ts';

/** What the engine knows of a field besides its type. */
export interface FieldTraits {
  /**
   * Declares a mutation that takes an idempotency key: results of others may have secrets, which are never stored. The
   * function returns what wraps its transaction; undefined if nothing does.
   */
  idempotent?: (
    services: FeatureServices,
  ) => (<Result>(nodeId: string, work: () => Promise<Result>) => Promise<Result>) | undefined;
  /** Whether the field counts rows. */
  counts?: boolean;
  /** Returns what the field costs with so many members in the lists of its arguments, in objects of a result. */
  price?: (members: number) => number;
}

/** Returns the options of a field with traits. */
export function traits(declared: FieldTraits) {
  return { extensions: { traits: declared } };
}

/** Returns the traits of a field. */
export function traitsOf(field: GraphQLField<unknown, unknown> | undefined): FieldTraits {
  return (field?.extensions.traits ?? {}) as FieldTraits;
}

/** A mutation that takes an idempotency key, and is wrapped by nothing. */
export const IDEMPOTENT = traits({ idempotent: () => undefined });

/** A field that counts rows. */
export const COUNTS_ROWS = traits({ counts: true });
