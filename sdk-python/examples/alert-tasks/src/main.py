"""Serves the plugin."""

import sys

from alerts import AlertTasks

from kandev_plugin import serve

if __name__ == "__main__":
    sys.exit(serve(AlertTasks()))
