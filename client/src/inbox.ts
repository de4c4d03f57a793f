// courtside-client/inbox: importing it registers <courtside-inbox>.
export * from './inbox/element.ts'
