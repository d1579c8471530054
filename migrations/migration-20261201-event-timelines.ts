import { Migration } from '@mikro-orm/migrations';

/** The timeline of the server that gave the last number: on another one, numbers that were given may have been lost. */
export class Migration20261201EventTimelines extends Migration {
  override up(): void {
    this.addSql('alter table node_event_seq add column timeline integer');
  }
}
