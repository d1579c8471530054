import { render } from 'preact';
import { html } from './html.ts';
import { Loaded } from './kit/page.ts';
import { viewer } from './session.ts';
import { SignIn } from './views/sign-in.ts';

type LayoutModule = typeof import('./layout.ts');

function App() {
  if (!viewer.value) return html`<${SignIn} />`;
  // It is loaded while a person types their password.
  return html`<${Loaded} title="Portcullis" load=${() => import('./layout.ts')}>${({ Layout }: LayoutModule) => html`<${Layout} />`}<//>`;
}

render(html`<${App} />`, document.body);
