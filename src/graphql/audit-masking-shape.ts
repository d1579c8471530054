import { type DocumentNode, type FieldNode, type FragmentDefinitionNode, Kind, type SelectionSetNode } from 'graphql';
import { HIDDEN, type JsonRule } from '../audit/mask-json-rules.ts';
import { isSecretKey } from '../audit/mask-keys.ts';

interface Walk {
  fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  /** Made once for each set of selections that are answered with one object: spreads may be nested. */
  rules: Map<string, JsonRule | undefined>;
  ids: Map<SelectionSetNode, number>;
}

/**
 * The rule of a valid document's `data`: hidden is what a field with a secret's name answers, under whatever alias. Where the
 * types of a union differ, a name that is a secret of one of them is hidden in all. Undefined when nothing is hidden.
 */
export function dataRuleOf(document: DocumentNode): JsonRule | undefined {
  const fragments = new Map<string, FragmentDefinitionNode>();
  const roots: SelectionSetNode[] = [];
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
    else if (definition.kind === Kind.OPERATION_DEFINITION) roots.push(definition.selectionSet);
  }
  return ruleOf({ fragments, rules: new Map(), ids: new Map() }, roots);
}

function ruleOf(walk: Walk, sets: readonly SelectionSetNode[]): JsonRule | undefined {
  const key = sets.map((set) => idOf(walk, set)).join();
  if (walk.rules.has(key)) return walk.rules.get(key);
  const members = new Map<string, JsonRule>();
  for (const [name, fields] of fieldsOf(walk, sets)) {
    const rule = fields.some((field) => isSecretKey(field.name.value))
      ? HIDDEN
      : ruleOf(
          walk,
          fields.flatMap(({ selectionSet }) => selectionSet ?? []),
        );
    if (rule !== undefined) members.set(name, rule);
  }
  const made: JsonRule | undefined = members.size > 0 ? { kind: 'members', members } : undefined;
  walk.rules.set(key, made);
  return made;
}

/** The fields of an answered object by their names in the answer, fragments unfolded. */
function fieldsOf({ fragments }: Walk, sets: readonly SelectionSetNode[]): Map<string, FieldNode[]> {
  const fields = new Map<string, FieldNode[]>();
  const spread = new Set<string>();
  const open = [...sets];
  for (let set = open.pop(); set !== undefined; set = open.pop()) {
    for (const selection of set.selections) {
      switch (selection.kind) {
        case Kind.FIELD: {
          const name = (selection.alias ?? selection.name).value;
          const others = fields.get(name);
          if (others) others.push(selection);
          else fields.set(name, [selection]);
          break;
        }
        case Kind.INLINE_FRAGMENT:
          open.push(selection.selectionSet);
          break;
        case Kind.FRAGMENT_SPREAD: {
          const fragment = fragments.get(selection.name.value);
          if (fragment && !spread.has(selection.name.value)) open.push(fragment.selectionSet);
          spread.add(selection.name.value);
          break;
        }
        default:
          selection satisfies never;
      }
    }
  }
  return fields;
}

function idOf({ ids }: Walk, set: SelectionSetNode): number {
  const id = ids.get(set) ?? ids.size;
  ids.set(set, id);
  return id;
}
