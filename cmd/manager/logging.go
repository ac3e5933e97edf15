// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"

	"github.com/go-logr/zapr"
	uberzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/queueworker/operator/internal/managerconfig"
)

// setUpLogging sends everything, also what client-go and net/http write, as
// structured lines to w. No line carries a stack trace: an error that a user can
// cause must read as one line.
func setUpLogging(config managerconfig.Logging, w io.Writer) {
	level := map[string]zapcore.Level{"debug": zapcore.DebugLevel, "info": zapcore.InfoLevel, "error": zapcore.ErrorLevel}[config.Level]
	readableTime := func(c *zapcore.EncoderConfig) { c.EncodeTime = zapcore.RFC3339NanoTimeEncoder }
	encoder := zap.JSONEncoder(readableTime)
	if config.Format == "console" {
		encoder = zap.ConsoleEncoder(readableTime)
	}
	raw := zap.NewRaw(zap.WriteTo(w), zap.Level(level), zap.StacktraceLevel(zapcore.PanicLevel), encoder)
	uberzap.RedirectStdLog(raw)
	logger := zapr.NewLogger(raw)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger.WithName("client-go"))
}
