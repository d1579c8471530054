import { Migration } from '@mikro-orm/migrations';

const STATEMENTS = [
  `create table seen_attention (
    id uuid primary key, node_id uuid not null references nodes, kind text not null, key text not null, members text[] not null,
    note text, seen_by text not null, seen_at timestamptz(6) not null,
    constraint seen_attention_group unique (node_id, kind, key))`,
  `alter table seen_attention add constraint seen_attention_note_length check (char_length(note) <= 1024) not valid,
    add constraint seen_attention_seen_by_length check (char_length(seen_by) <= 1024) not valid`,
];

/** Groups of what needs a decision that somebody has marked as seen. */
export class Migration20261128230100SeenAttention extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement);
  }
}
