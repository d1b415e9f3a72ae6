package failure

import "github.com/cenkalti/backoff/v4"

// row is everything that the package knows about one category; a new category
// is a constant and a row. Phrases are separated by commas and match whole
// words, in lower case; type phrases match the words of a camel-case name.
type row struct {
	category Category
	typeName string
	types    string // phrases in the name of an error type
	words    string // phrases in a message
	japanese string // substrings of a message
	again    int    // redeliveries after the first try
	series   func() backoff.BackOff
	jitter   bool
	spent    Action // what follows when the redeliveries are used up
	orElse   Action // what follows when spent is NextSource and there is none
}

// table is in order of priority.
var table = []row{
	{
		category: RateLimit, typeName: "ModelRateLimitError",
		types: "rate limit, ratelimit, throttled, throttling, too many requests, resource exhausted, quota exceeded, overloaded",
		words: "rate limit, rate limits, rate limited, rate limiting, ratelimit, ratelimited, rate_limit, rate_limit_error, " +
			"rate_limit_exceeded, too many requests, throttled, throttling, resource exhausted, resource_exhausted, overloaded, " +
			"overloaded_error, insufficient_quota, quota exceeded, exceeded your current quota, exceeded your quota, " +
			"limit reached, requests per minute, tokens per minute",
		japanese: "レート制限, レートリミット, リクエストが多すぎ, リクエスト数が多すぎ, 利用制限, 利用上限, クォータ",
		again:    5, series: exponential, jitter: true, spent: NextSource, orElse: Review,
	},
	{
		category: Timeout, typeName: "ModelTimeoutError",
		types:    "timeout, timed out, deadline exceeded",
		words:    "timeout, timeouts, timed out, time out, timedout, etimedout, deadline exceeded",
		japanese: "タイムアウト, 時間切れ, 制限時間",
		again:    3, series: linear, spent: NextSource, orElse: Review,
	},
	{
		category: Connection, typeName: "ModelConnectionError",
		types: "connection, connect, network, dns, gaierror, eof, go away, broken pipe, disconnected, incomplete read, " +
			"service unavailable, internal server, bad gateway",
		words: "connection, connections, network, dns, no such host, name or service not known, name resolution, resolve host, " +
			"resolve failed, cannot connect, could not connect, failed to connect, unable to connect, connect refused, " +
			"unexpected eof, eof occurred, broken pipe, econnrefused, econnreset, epipe, enotfound, unreachable, goaway, " +
			"no responders, server disconnected, peer closed, reset by peer, host is down, service unavailable, bad gateway, " +
			"internal server error, socket hang up",
		japanese: "接続, ネットワーク, 通信エラー, 通信に失敗, 名前解決",
		again:    3, series: exponential, jitter: true, spent: NextSource, orElse: Review,
	},
	{
		category: InvalidOutput, typeName: "InvalidModelOutputError",
		types:    "json, json syntax error, json unmarshal type error, parse, parser, parsing, decode, decoding, model output, finish reason",
		words:    "json, parse, decode, invalid format, malformed response, finish_reason",
		japanese: "解析に失敗, パースに失敗, パースエラー, デコード, 不正な形式, 形式が不正, 形式が正しく",
		again:    3, series: atOnceThenFive, spent: NextSource, orElse: Review,
	},
	{
		category: Security, typeName: "SecurityError",
		types: "security", spent: Bury,
	},
	{
		category: Sandbox, typeName: "SandboxExecutionError",
		types:    "sandbox, called process",
		words:    "sandbox, subprocess, execution failed",
		japanese: "サンドボックス, サブプロセス, 子プロセス",
		spent:    Bury,
	},
	{
		category: PatchApply, typeName: "PatchApplyError",
		types:    "patch, hunk",
		words:    "patch, diff, hunk",
		japanese: "パッチ, 差分",
		spent:    Bury,
	},
	{
		category: Unexpected, typeName: "UnexpectedSystemError",
		types: "nexus core error, unexpected system, canceled, cancelled, keyboard interrupt, content policy, authentication, " +
			"permission, bad request, not found, unprocessable, key error, attribute error, type error, index error, name error, " +
			"import error, syntax error, indentation error, lookup error, assertion error, zero division, recursion error, " +
			"memory error, not implemented, unicode decode, unicode encode, unbound local, budget",
		words: "certificate verify failed, certificate has expired, unknown authority, x509, budget limit, budget exceeded, " +
			"content policy, content filter, safety system, api key invalid, invalid api key, incorrect api key, invalid_api_key, " +
			"unauthorized, forbidden, context canceled, operation was canceled, context length, context_length_exceeded, " +
			"no space left",
		japanese: "証明書, 認証に失敗, 認証エラー, 予算, APIキーが無効, キャンセル",
		spent:    Abort,
	},
}

// masked are phrases whose words look like a category and are not one.
const masked = "disk quota, neural network, social network, network graph, timeout parameter, timeout value, timeout argument, " +
	"timeout must, invalid timeout, keyword argument timeout, http patch, patch request, patch requests, patch method, " +
	"mock patch, monkey patch, merge conflict, database schema"
