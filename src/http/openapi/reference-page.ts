import { html, Markup } from '../format/html.ts'
import { STATUS_CODES } from '../format/status.ts'
import type { Headers, Media, OpenApiDocument, Operation, Parameter, Response } from './document.ts'
import { resolve, type Schema, type Schemas } from './schemas.ts'

/** A ball; without an icon of the page's own a browser would ask for /favicon.ico. */
const ICON = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="#c8d92b"/></svg>',
)}`

type Row = { method: string; path: string; operation: Operation }

/** The whole document as one page of plain HTML, which needs no script. @param style its CSS */
export function referencePage(document: OpenApiDocument, style: string): string {
  const { info, components } = document
  const tags = Map.groupBy(rowsOf(document), ({ operation }) => operation.tags[0]!)
  return html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${info.title} API reference</title>
<link rel="icon" href="${ICON}">
<style>${new Markup(style)}</style>
<nav aria-label="Contents">
<p class="name">${info.title} <small>${info.version}</small></p>
${[...tags].map(([tag, rows]) => html`<p>${tag}</p><ul>${rows.map(navEntry)}</ul>`)}
<p>Schemas</p>
<ul>${Object.keys(components.schemas).map(name => html`<li><a href="#${name}">${name}</a></li>`)}</ul>
</nav>
<main>
<header>
<h1>${info.title} API reference</h1>
${info.description.split('\n\n').map(text => html`<p>${prose(text)}</p>`)}
<p>The same for programs: <a href="/api/v1/openapi.json">openapi.json</a> (OpenAPI ${document.openapi})</p>
</header>
${[...tags].map(([tag, rows]) => html`<h2>${tag}</h2>${rows.map(row => operationSection(row, document))}`)}
<h2>Schemas</h2>
${Object.entries(components.schemas).map(
  ([name, schema]) => html`<section id="${name}"><h3><a href="#${name}">${name}</a></h3>${fields(schema)}</section>`,
)}
</main>
</html>
`.text
}

function rowsOf({ paths }: OpenApiDocument): Row[] {
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
}

function navEntry({ method, path, operation }: Row): Markup {
  return html`<li><a href="#${operation.operationId}" title="${method} ${path}">${operation.summary}</a></li>`
}

function operationSection({ method, path, operation }: Row, { components }: OpenApiDocument): Markup {
  const { operationId, summary, description, parameters, requestBody, responses } = operation
  return html`<section id="${operationId}">
<h3><a href="#${operationId}">${summary}</a></h3>
<p class="call"><b class="${method.toLowerCase()}">${method}</b> <code>${path}</code> <span>${callers(operation)}</span></p>
${description ? html`<p>${prose(description)}</p>` : ''}
${parameters ? html`<h4>Parameters</h4>${table(parameters.map(parameterRow))}` : ''}
${requestBody ? html`<h4>Body${requestBody.required ? '' : ', optional'}</h4>${medias(requestBody.content, components.schemas)}` : ''}
${Object.entries(responses).map(([status, response]) => responsePart(status, response, components))}
</section>
`
}

function callers({ security }: Operation): string {
  const [first, second] = security
  if (!first) return 'public'
  if (second) return 'public, a token is welcome'
  return 'intakeKey' in first ? 'intake key' : 'access token'
}

function responsePart(
  status: string,
  written: Response,
  { schemas, responses }: OpenApiDocument['components'],
): Markup {
  const response = written.$ref ? responses[written.$ref.split('/').at(-1)!]! : written
  const body = html`${headerTable(response.headers)}${medias(response.content ?? {}, schemas)}`
  const fails = Number(status) >= 400
  const title = html`<b>${status}</b> ${fails ? prose(response.description) : STATUS_CODES[status]!}`
  return fails
    ? html`<details><summary>${title}</summary>${body}</details>`
    : html`<h4>Answer: ${title}</h4>${response.description === STATUS_CODES[status] ? '' : html`<p>${prose(response.description)}</p>`}${body}`
}

function headerTable(headers: Headers = {}): Markup | '' {
  const rows = Object.entries(headers).map(([name, { description }]) => row(name, 'header', description))
  return rows.length > 0 ? table(rows) : ''
}

/** Media types that have one schema are told in one go. */
function medias(content: Record<string, Media>, schemas: Schemas): Markup[] {
  const same = Map.groupBy(Object.entries(content), ([, media]) => JSON.stringify(media))
  return [...same.values()].map(entries => {
    const media = entries[0]![1]
    const examples = media.examples ? Object.values(media.examples).map(({ value }) => value) : [media.example]
    return html`<p class="media">${entries.map(([type]) => type).join(', ')}${named(media.schema)}</p>
${media.schema.$ref === '#/components/schemas/Error' ? '' : fields(resolve(media.schema, schemas))}
${examples.map(example => html`<pre>${typeof example === 'string' ? example : JSON.stringify(example, null, 2)}</pre>`)}`
  })
}

function named({ $ref }: Schema): Markup | '' {
  return $ref ? html` · ${link($ref)}` : ''
}

function fields(schema: Schema): Markup {
  const rows = Object.entries(schema.properties ?? {}).map(([name, property]) =>
    row(name, typeOf(property), notes(property), !schema.required?.includes(name)),
  )
  const about = schema.description ? html`<p>${prose(schema.description)}</p>` : ''
  return html`${about}${rows.length > 0 ? table(rows) : html`<p>${typeOf(schema)}</p>`}`
}

function parameterRow({ name, in: place, required, description, schema }: Parameter): Markup {
  return row(
    name,
    html`${typeOf(schema)}, ${place}`,
    notes({ ...schema, ...(description && { description }) }),
    !required,
  )
}

function table(rows: Markup[]): Markup {
  return html`<div class="scroll"><table>${rows}</table></div>`
}

function row(name: string, type: Markup | string, note: string, optional = false): Markup {
  return html`<tr><th scope="row"><code>${name}</code>${optional ? html` <small>optional</small>` : ''}</th><td>${type}</td><td>${prose(note)}</td></tr>`
}

function typeOf(schema: Schema): Markup {
  if (schema.$ref) return link(schema.$ref)
  if (schema.anyOf) return joined(schema.anyOf.map(typeOf), ' or ')
  if (schema.const !== undefined) return html`<code>${JSON.stringify(schema.const)}</code>`
  if (schema.enum)
    return joined(
      schema.enum.map(value => html`<code>${JSON.stringify(value)}</code>`),
      ', ',
    )
  if (schema.type === 'array' && schema.items) return html`list of ${typeOf(schema.items)}`
  return html`${[schema.type ?? 'any'].flat().join(' or ')}${schema.format ? ` (${schema.format})` : ''}`
}

function joined(parts: Markup[], between: string): Markup {
  return html`${parts.map((part, index) => (index === 0 ? part : html`${between}${part}`))}`
}

function link($ref: string): Markup {
  const name = $ref.split('/').at(-1)!
  return html`<a href="#${name}">${name}</a>`
}

/** The limits in words. */
function notes({
  description,
  minimum,
  maximum,
  minLength,
  maxLength,
  maxItems,
  default: usual,
  pattern,
}: Schema): string {
  return [
    description,
    minimum !== undefined && `At least ${minimum}.`,
    maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER && `At most ${maximum}.`,
    minLength !== undefined && `At least ${minLength} character(s).`,
    maxLength !== undefined && `At most ${maxLength} characters.`,
    maxItems !== undefined && `At most ${maxItems} items.`,
    usual !== undefined && `Default ${JSON.stringify(usual)}.`,
    // A pattern is for programs, where words say the same.
    pattern && !description && `Matches \`${pattern}\`.`,
  ]
    .filter(Boolean)
    .join(' ')
}

/** Text in which backticks mark code. */
function prose(text: string): Markup {
  return html`${text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`))}`
}
