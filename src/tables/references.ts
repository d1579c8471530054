import { type EntitySchema, p } from '@mikro-orm/core';
import { Node } from './reference.entity.ts';

/** Declares `node_id` as a foreign key to the tenant. */
export function ofNode() {
  return p.manyToOne(Node).fieldName('node_id');
}

/**
 * Declares the foreign key of `node_id` and a column to a row of the same tenant. The columns are declared apart from
 * it, because a primary key or an index can have only one of them.
 */
export function withinNode<Target extends EntitySchema, Column extends string>(target: Target, column: Column) {
  return p
    .manyToOne(target)
    .fieldName(column)
    .fieldNames('node_id', column)
    .joinColumns('node_id', column)
    .referencedColumnNames('node_id', 'id');
}
