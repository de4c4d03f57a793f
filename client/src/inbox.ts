// Importing courtside-client/inbox registers <courtside-inbox>.
export * from './inbox/element.ts'
