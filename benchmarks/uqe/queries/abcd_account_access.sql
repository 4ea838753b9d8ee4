SELECT id FROM labels WHERE flow_silver = 'account_access'
