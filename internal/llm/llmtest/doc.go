// Package llmtest is a real HTTP server on the loopback that answers chat
// completions from a script, so that a test exercises the whole way of a model
// call: sockets, status codes, streams, cuts and silences.
//
// A script has one step a line; each request takes the next step. Empty lines
// and lines that begin with # do not count. When the script is over, every
// further request gets HTTP 500 "the script is over" and Server.Excess counts
// it.
//
//	answer "text"            the text, streamed in chunks, finish reason stop
//	answer @path             the same, from a file
//	echo                     answers with the last user message
//	status 429 "body"        an HTTP status; Name=value adds a header
//	cut "text"               the connection breaks in the middle of the stream
//	hang "text"              nothing more comes, until the client leaves
//	error "text"             an error inside an accepted stream; a text that is
//	                         JSON is sent as it is
//	raw "data: {}\n\n"       these bytes are the stream
//	json "text"              the whole answer in one document, not streamed
//
// Texts are Go strings, quoted or backquoted; without quotes the rest of the
// line is the text. Options stand between the verb and the text:
//
//	times=3       the step answers three requests; times=* all that follow
//	chunks=4      the text comes in four events (default: 16 bytes each)
//	after=2       cut, hang and error: after two chunks (default 1); after=all
//	              sends the whole text first, after=none not even the headers
//	finish=length the stop reason (default stop); finish=none leaves it out
//	done=no       the stream ends without [DONE]
//	if="text"     the step is for requests that contain the text; such steps
//	              are looked at first and the others keep their order
package llmtest
