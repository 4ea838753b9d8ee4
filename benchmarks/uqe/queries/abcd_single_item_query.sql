SELECT id FROM labels WHERE flow_silver = 'single_item_query'
